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

// MinWaste is cctools' mode MIN_WASTE. It chooses one first amount for all tasks, and gives
// those that need more the most that was seen: the amount a with the least
// a·τ̄ + m·Σ_{r>a} p(r)·τ(r), where m is the most that was seen, and p and τ are share and
// mean time of the tasks that take r. It chooses after every 25th task, and after one that
// takes more than any before.
type MinWaste struct {
	step    float64
	seconds map[float64]float64 // of all tasks of about the same peak, by that, rounded up
	tasks   int
	most    float64
	amount  float64
}

// NewMinWaste returns a MinWaste that has seen nothing.
func NewMinWaste(step float64) *MinWaste {
	return &MinWaste{step: step, seconds: make(map[float64]float64)}
}

// Name implements Method.
func (m *MinWaste) Name() string { return "minimum waste" }

// Add implements Method.
func (m *MinWaste) Add(t Task) {
	peak := max(roundUp(t.Peak, m.step), m.step)
	m.seconds[peak] += t.Seconds
	m.tasks++
	if peak > m.most || m.tasks%every == 0 {
		m.most = max(m.most, peak)
		m.amount = m.choose()
	}
}

// Estimate implements Method.
func (m *MinWaste) Estimate(float64) (float64, bool) { return m.amount, m.tasks >= every }

// choose returns the first amount with the least waste; of several the least. The number of
// tasks, by which the formula divides both sums, is the same for all amounts and left out.
func (m *MinWaste) choose() float64 {
	peaks := slices.Sorted(maps.Keys(m.seconds))
	all, below := 0.0, 0.0
	for _, peak := range peaks {
		all += m.seconds[peak]
	}
	best, least := m.most, math.Inf(1)
	for _, amount := range peaks {
		below += m.seconds[amount]
		if waste := amount*all + m.most*(all-below); waste < least {
			best, least = amount, waste
		}
	}
	return best
}
