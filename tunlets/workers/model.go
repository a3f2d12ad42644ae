// SPDX-License-Identifier: Apache-2.0

package workers

import "math"

// Cost is the time of a round as a function of the number of workers n, seconds:
//
//	Tt(n) = Fixed + PerWorker·n + Work/min(n, CPUs)
//
// It is Morajko's model in another order of its terms, see [FromMessages], with a
// derivation of our own: more workers than CPUs do not share the work further.
type Cost struct {
	// Fixed is what a round takes however many workers there are.
	Fixed float64
	// PerWorker is what the master needs for each worker, one after the other.
	PerWorker float64
	// Work is the computing of all workers together: Tc.
	Work float64
	// CPUs bounds the workers that compute at one time; 0: as many as there are
	// workers, as in the original.
	CPUs float64
}

// FromMessages is the cost as the model's author has it (A. Morajko, Dynamic
// Tuning of Parallel/Distributed Applications, PhD thesis, Universitat Autònoma
// de Barcelona, 2004):
//
//	Tt(n) = 2·m0 + ((n-1)·α + 1)·λ·V + Tc/n
//
// m0 is the seconds that a message takes to start, λ the seconds per byte, V the
// bytes that the master exchanges with one worker in a round, α the part of them
// that it sends: it sends to n workers one after the other, and the last one's
// result comes back alone. Tc is the seconds of computing of a round.
func FromMessages(m0, alpha, lambda, volume, work float64) Cost {
	return Cost{
		Fixed:     2*m0 + (1-alpha)*lambda*volume,
		PerWorker: alpha * lambda * volume, Work: work,
	}
}

// Time is Tt(n), seconds.
func (c Cost) Time(n float64) float64 {
	busy := n
	if c.CPUs > 0 {
		busy = min(n, c.CPUs)
	}
	return c.Fixed + c.PerWorker*n + c.Work/busy
}

// Index is Morajko's performance index Pi(n) = n·Tt(n)²/Tc: time by efficiency,
// the less the better. Its least value is where one more worker would cost more
// than it brings.
func (c Cost) Index(n float64) float64 {
	t := c.Time(n)
	return n * t * t / c.Work
}

// BestIndex is the n, not whole, at which Index is least, without regard to CPUs.
// dPi/dn = 0 leads to 3·PerWorker·n² + Fixed·n - Work = 0. It is infinite where
// workers cost nothing and rounds are nothing but work.
func (c Cost) BestIndex() float64 {
	if c.PerWorker == 0 {
		return c.Work / c.Fixed
	}
	return (math.Sqrt(c.Fixed*c.Fixed+12*c.PerWorker*c.Work) - c.Fixed) / (6 * c.PerWorker)
}

// BestTime is the n at which Time is least: sqrt(Work/PerWorker).
func (c Cost) BestTime() float64 { return math.Sqrt(c.Work / c.PerWorker) }

// Scan is the whole n from least to most at which f is least; the smaller one of
// equal ones.
func Scan(least, most int, f func(n float64) float64) int {
	best := least
	for n := least + 1; n <= most; n++ {
		if f(float64(n)) < f(float64(best)) {
			best = n
		}
	}
	return best
}
