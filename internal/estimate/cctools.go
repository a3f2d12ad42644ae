// SPDX-License-Identifier: Apache-2.0

package estimate

import (
	"maps"
	"math"
	"slices"
)

const (
	// padding is what cctools adds to a maximum, as a part of the step.
	padding = 1.0 / 3
	// every is after how many tasks cctools chooses anew.
	every = 25
)

// roundUp is the next multiple of a step.
func roundUp(amount, step float64) float64 { return math.Ceil(amount/step) * step }

// Max is cctools' mode MAX: the most that any task has taken, a third of a step more,
// rounded up to whole steps (cctools: 250 MB).
type Max struct {
	step, most float64
	seen       bool
}

// NewMax returns a Max that has seen nothing.
func NewMax(step float64) *Max { return &Max{step: step} }

// Name implements Method.
func (m *Max) Name() string { return "maximum" }

// Add implements Method.
func (m *Max) Add(t Task) { m.most, m.seen = max(m.most, t.Peak), true }

// Estimate implements Method.
func (m *Max) Estimate(float64) (float64, bool) {
	return roundUp(m.most+padding*m.step, m.step), m.seen
}

// firsts are cctools' modes that choose one first amount for all tasks, and give those
// that need more the most that was seen. They choose after every 25th task, and after one
// that takes more than any before.
type firsts struct {
	name   string
	step   float64
	better func(a, b float64) bool
	value  func(d distribution, amount float64) float64

	seconds map[float64]bucket // by peak, rounded up
	tasks   int
	most    float64
	amount  float64
}

// bucket is how many tasks there are of about the same peak, and their times together.
type bucket struct {
	tasks   int
	seconds float64
}

// distribution is a first amount's view of all tasks.
type distribution struct {
	most    float64 // peak of any task
	fits    float64 // share of the tasks for which the amount is enough
	seconds float64 // mean time of a task
	again   float64 // the same, with 0 for those for which the amount is enough
}

// NewMinWaste returns cctools' mode MIN_WASTE: the amount a with the least
// a·τ̄ + m·Σ_{r>a} p(r)·τ(r), where m is the most that was seen, and p and τ are share and
// mean time of the tasks that take r.
func NewMinWaste(step float64) Method {
	return &firsts{
		name: "minimum waste", step: step, better: func(a, b float64) bool { return a < b },
		value: func(d distribution, amount float64) float64 { return amount*d.seconds + d.most*d.again },
	}
}

// NewMaxThroughput returns cctools' mode MAX_THROUGHPUT: the amount a with the greatest
// ((m/a)·P(r≤a) + P(r>a)) / (τ̄ + Σ_{r>a} p(r)·τ(r)), in the words of [NewMinWaste].
func NewMaxThroughput(step float64) Method {
	return &firsts{
		name: "maximum throughput", step: step, better: func(a, b float64) bool { return a > b },
		value: func(d distribution, amount float64) float64 {
			return (d.most/amount*d.fits + 1 - d.fits) / (d.seconds + d.again)
		},
	}
}

// Name implements Method.
func (f *firsts) Name() string { return f.name }

// Add implements Method.
func (f *firsts) Add(t Task) {
	if f.seconds == nil {
		f.seconds = make(map[float64]bucket)
	}
	peak := max(roundUp(t.Peak, f.step), f.step)
	b := f.seconds[peak]
	f.seconds[peak] = bucket{b.tasks + 1, b.seconds + t.Seconds}
	f.tasks++
	if peak > f.most || f.tasks%every == 0 {
		f.most = max(f.most, peak)
		f.amount = f.choose()
	}
}

// Estimate implements Method.
func (f *firsts) Estimate(float64) (float64, bool) { return f.amount, f.tasks >= every }

// choose returns the best first amount; of several the least.
func (f *firsts) choose() float64 {
	var all bucket
	for _, b := range f.seconds {
		all.tasks += b.tasks
		all.seconds += b.seconds
	}
	tasks := float64(all.tasks)
	var below bucket
	best, value := f.most, 0.0
	for i, amount := range slices.Sorted(maps.Keys(f.seconds)) {
		below.tasks += f.seconds[amount].tasks
		below.seconds += f.seconds[amount].seconds
		v := f.value(distribution{
			most: f.most, fits: float64(below.tasks) / tasks,
			seconds: all.seconds / tasks, again: (all.seconds - below.seconds) / tasks,
		}, amount)
		if i == 0 || f.better(v, value) {
			best, value = amount, v
		}
	}
	return best
}
