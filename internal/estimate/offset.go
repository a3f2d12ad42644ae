// SPDX-License-Identifier: Apache-2.0

package estimate

import (
	"cmp"
	"fmt"
	"slices"
)

// Offset adds to a base the offset that would have been cheapest for all tasks so far,
// with the price of failed tries that [Chooser] has, and a margin (ours). The base is
// nothing or, where that is cheaper, the line of least squares by input size.
//
// The margin is the range of what was seen, divided by the number of tasks and times a
// caution: of n values from 0 to an unknown end, that end is on average a n-th beyond the
// greatest one. With a caution of 1 a sequence that still grows is followed closely, with
// 3 it is run ahead of.
type Offset struct {
	recent
	caution float64
	flat    float64 // offset without a base
	line    line
	lined   float64 // offset from the line
	spread  float64 // of what the line misses
	useLine bool
}

// Least margins, bytes: a line is less sure than a number.
const (
	flatMargin   = 64 << 20
	ponderMargin = 128 << 20
	lineMargin   = 256 << 20
)

// NewOffset returns an Offset.
func NewOffset(caution float64) *Offset { return &Offset{caution: caution} }

// Name implements Method.
func (o *Offset) Name() string { return fmt.Sprintf("cheapest offset, caution %.0f", o.caution) }

// Add implements Method.
func (o *Offset) Add(t Task) {
	o.add(t)
	var flat, lined float64
	o.flat, flat = cheapest(o.tasks, line{}, o.most)
	o.useLine = len(o.inputs) >= fewest && len(o.inputs) == len(o.tasks)
	if !o.useLine {
		return
	}
	if o.line, o.useLine = leastSquares(o.inputs, o.peaks, nil); o.useLine {
		o.lined, lined = cheapest(o.tasks, o.line, o.most)
		lack, excess := o.line.residuals(o.inputs, o.peaks)
		o.spread = lack + excess
		o.useLine = lined < flat
	}
}

// Estimate implements Method.
func (o *Offset) Estimate(input float64) (float64, bool) {
	tasks := float64(len(o.tasks))
	if o.useLine && input > 0 {
		return max(o.line.of(input)+o.lined, o.least) + max(lineMargin, o.caution*o.spread/tasks), true
	}
	return o.flat + max(flatMargin, o.caution*(o.most-o.least)/tasks), tasks > 0
}

// cheapest returns the offset from a base with the least cost, which is what one of the
// tasks lacks: those that lack at most as much leave some of it unused, and the others
// fail once, and are then given the most.
func cheapest(tasks []Task, base line, most float64) (offset, cost float64) {
	type lack struct{ amount, base, seconds, again float64 }
	lacks := make([]lack, len(tasks))
	var failing lack // sums over those that fail
	for i, t := range tasks {
		b := base.of(t.Input)
		lacks[i] = lack{t.Peak - b, b * t.Seconds, t.Seconds, (most - t.Peak + failurePrice*most) * t.Seconds}
		failing.base += lacks[i].base
		failing.seconds += t.Seconds
		failing.again += lacks[i].again
	}
	slices.SortFunc(lacks, func(a, b lack) int { return cmp.Compare(a.amount, b.amount) })
	var seconds, used float64 // of those that fit: Σ t, Σ lack·t
	for i, l := range lacks {
		seconds += l.seconds
		used += l.amount * l.seconds
		failing.base -= l.base
		failing.seconds -= l.seconds
		failing.again -= l.again
		c := l.amount*seconds - used + failing.base + l.amount*failing.seconds + failing.again
		if i == 0 || c < cost {
			offset, cost = l.amount, c
		}
	}
	return offset, cost
}
