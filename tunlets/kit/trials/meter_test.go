// SPDX-License-Identifier: Apache-2.0

package trials

import (
	"math"
	"testing"

	"github.com/attune-hpc/attune/tunlets/sdk/search"
)

// interval is what a meter is told: calls in a tenth of a second, with values.
type interval struct{ calls, low, high uint64 }

func TestMeter(t *testing.T) {
	const original, tried, other = 1, 2, 3
	with := func(n int, one interval) (list []interval) {
		for range n {
			list = append(list, one)
		}
		return list
	}
	for _, tt := range []struct {
		name      string
		intervals [][]interval
		gain      float64 // 0: not known
		disturbed bool
	}{
		{"twice as many", [][]interval{with(10, interval{20, tried, tried}), with(10, interval{10, original, original})}, 2, false},
		{"in turns", [][]interval{
			with(5, interval{20, tried, tried}), with(5, interval{10, original, original}),
			with(5, interval{20, tried, tried}), with(5, interval{10, original, original}),
		}, 2, false},
		{"one part is disturbed", [][]interval{with(10, interval{20, tried, tried}), with(3, interval{2000, tried, tried}), with(10, interval{20, tried, tried})}, 2, false},
		{"what is mixed counts for nobody", [][]interval{with(5, interval{20, tried, tried}), with(99, interval{999, original, tried}), with(5, interval{20, tried, tried})}, 2, false},
		{"the first one is of both", [][]interval{{{999, tried, tried}}, with(9, interval{20, tried, tried})}, 2, false},
		{"a call takes longer than intervals", [][]interval{
			{{1, tried, tried}}, with(4, interval{}), {{1, tried, tried}}, with(4, interval{}), {{1, tried, tried}},
		}, 0.02, false},
		{"what passes between two values counts for nobody", [][]interval{with(10, interval{}), with(9, interval{20, tried, tried})}, 2, false},
		{"too little", [][]interval{with(3, interval{20, tried, tried})}, 0, false},
		{"some of another value", [][]interval{with(mostForeign, interval{99, other, other}), with(9, interval{20, tried, tried})}, 2, false},
		{"of another value", [][]interval{with(mostForeign+3, interval{99, other, other})}, 0, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m := meter{original: original, tried: original}
			for range 50 {
				m.add(10, original, original, 0.1)
			}
			if total(m.off).seconds > baselineSeconds+0.15 || !m.ready() {
				t.Fatalf("baseline of %v s, ready %v; want %v s", total(m.off).seconds, m.ready(), baselineSeconds)
			}
			m.try(tried)
			for _, list := range tt.intervals {
				for _, one := range list {
					m.add(one.calls, one.low, one.high, 0.1)
				}
			}
			gain, ok := m.gain()
			if ok != (tt.gain > 0) || math.Abs(gain-tt.gain) > 0.02*tt.gain || m.disturbed() != tt.disturbed {
				t.Errorf("gain %v, %v, disturbed %v; want %v, %v", gain, ok, m.disturbed(), tt.gain, tt.disturbed)
			}
			m.end()
			m.add(20, tried, tried, 0.1)
			m.add(20, tried, tried, 0.1)
			if len(m.on) > 0 || m.ready() {
				t.Error("what comes after the end counts")
			}
		})
	}
}

// Without a trial nobody but the program gives the variable several values in an interval.
func TestMeterWithoutTrial(t *testing.T) {
	m := meter{original: 1, tried: 1}
	for n := range 2 * mostForeign {
		if m.disturbed() != (n > mostForeign) {
			t.Fatalf("disturbed %v after %d intervals with several values, want it after more than %d", m.disturbed(), n, mostForeign)
		}
		m.add(10, 1, 2, 0.1)
	}
}

// What is set is what a capture of it has.
func TestBits(t *testing.T) {
	for _, tt := range []struct {
		kind  search.Kind
		size  uint32
		value float64
		bits  uint64
	}{
		{search.Integer, 4, -2, math.MaxUint64 - 1},
		{search.Integer, 8, 1 << 40, 1 << 40},
		{search.Real, 8, 0.5, 0x3fe0000000000000},
		{search.Real, 8, -0.5, 0xbfe0000000000000},
		{search.Real, 4, 0.5, 0x3f000000},
		{search.Real, 4, -0.5, 0xffffffffbf000000},
	} {
		p := Variable{Size: tt.size}
		p.Kind = tt.kind
		if got := p.bits(tt.value); got != tt.bits {
			t.Errorf("%v of %d bytes: %#x, want %#x", tt.value, tt.size, got, tt.bits)
		}
		if got := p.number(tt.bits); got != tt.value {
			t.Errorf("%#x of %d bytes: %v, want %v", tt.bits, tt.size, got, tt.value)
		}
	}
}
