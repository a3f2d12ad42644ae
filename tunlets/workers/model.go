// SPDX-License-Identifier: Apache-2.0

package workers

// Cost is the time of a round as a function of the number of workers n, seconds:
//
//	Tt(n) = Fixed + PerWorker·n + Work/min(n, CPUs)
//
// It is the model of A. Morajko (Dynamic Tuning of Parallel/Distributed Applications,
// PhD thesis, Universitat Autònoma de Barcelona, 2004) in another order of its terms,
// with a derivation of our own: more workers than CPUs do not share the work further.
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
