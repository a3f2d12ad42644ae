// SPDX-License-Identifier: Apache-2.0

package factoring

import "math"

// First is the part of the work of a round that its first batch should be, for
// workers that are alike and items whose times have the given mean and standard
// deviation: F0 = 1/(1 + σ·√(P/2)/μ) (S. F. Hummel, E. Schonberg, L. E. Flynn,
// Factoring: a method for scheduling parallel loops, CACM 35(8), 1992; as
// E. César, A. Moreno et al. have it for tuning master/worker programs). A batch
// is a piece for each of the P workers. 1, which is all at once, if items are
// alike.
func First(mean, deviation float64, workers int) float64 {
	return 1 / (1 + spread(mean, deviation, workers))
}

// Later is the part of what is left that each further batch should be:
// 1/(2 + σ·√(P/2)/μ).
func Later(mean, deviation float64, workers int) float64 {
	return 1 / (2 + spread(mean, deviation, workers))
}

func spread(mean, deviation float64, workers int) float64 {
	return deviation * math.Sqrt(float64(workers)/2) / mean
}

// Chunk is the items of a piece of a batch: ceil(R·F/P) of the R that are left, at
// least one.
func Chunk(left int, factor float64, workers int) int {
	return min(left, max(1, int(math.Ceil(float64(left)*factor/float64(workers)))))
}

// Round is what a simulated round needs to know.
type Round struct {
	// Items of a round.
	Items int
	// HandOut is the seconds that it takes a worker to get a piece.
	HandOut float64
	// Times are, for each worker, seconds of items that it did, in order: the
	// simulation takes them again and again, so that workers that are slower, and
	// items that differ, are in it as they were measured.
	Times [][]float64
}

// Factor is the seconds that a round takes in which each batch is the given part
// of what is left: the simulation by which César, Moreno et al. choose the
// partition factor where workers are not alike. The worker that is idle first
// gets the next piece.
func (r Round) Factor(factor float64) float64 {
	size, due := 0, 0
	return r.simulate(func(left int) int {
		if due == 0 {
			size, due = Chunk(left, factor, len(r.Times)), len(r.Times)
		}
		due--
		return min(left, size)
	})
}

// Fixed is the seconds that a round takes with pieces of the given size.
func (r Round) Fixed(size int) float64 {
	return r.simulate(func(left int) int { return min(left, size) })
}

// simulate hands out pieces until nothing is left.
func (r Round) simulate(piece func(left int) int) float64 {
	free := make([]float64, len(r.Times))
	next := make([]int, len(r.Times))
	for left := r.Items; left > 0; {
		w := first(free)
		n := piece(left)
		left -= n
		free[w] += r.HandOut
		for range n {
			free[w] += r.Times[w][next[w]%len(r.Times[w])]
			next[w]++
		}
	}
	last := 0.0
	for _, t := range free {
		last = max(last, t)
	}
	return last
}

// first is the worker that is idle first.
func first(free []float64) (w int) {
	for i, t := range free {
		if t < free[w] {
			w = i
		}
	}
	return w
}

// BestFactor is the factor of the given ones with the shortest simulated round, and
// that time. The first of equal ones.
func (r Round) BestFactor(factors []float64) (factor, seconds float64) {
	seconds = math.Inf(1)
	for _, f := range factors {
		if t := r.Factor(f); t < seconds {
			factor, seconds = f, t
		}
	}
	return factor, seconds
}

// BestFixed is the same for sizes of pieces: an equal share for
// each worker, and halves of it.
func (r Round) BestFixed() (size int, seconds float64) {
	seconds = math.Inf(1)
	for n := max(1, (r.Items+len(r.Times)-1)/len(r.Times)); n >= 1; n /= 2 {
		if t := r.Fixed(n); t < seconds {
			size, seconds = n, t
		}
	}
	return size, seconds
}

// factors are those that are tried: those that the formulas say, and steps from
// all at once to a twentieth.
func factors(mean, deviation float64, workers int) []float64 {
	out := []float64{Later(mean, deviation, workers), First(mean, deviation, workers)}
	for i := 20; i >= 1; i-- {
		out = append(out, float64(i)/20)
	}
	return out
}
