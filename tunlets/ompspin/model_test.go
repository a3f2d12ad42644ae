// SPDX-License-Identifier: Apache-2.0

package ompspin

import (
	"math"
	"testing"

	"github.com/attune-hpc/attune/tunlets/sdk"
)

// spinning is one of two teams of two threads on two CPUs, as measured.
func spinning() load { return load{Run: 0.98, Wait: 1.02, Yields: 279, Threads: 2, CPUs: 2} }

// What was measured of bench/workloads/omp_regions, two of them with two threads
// each on two CPUs, and the regions per second of one of them when its threads
// slept. The shortest region is what one takes alone.
func TestPredictions(t *testing.T) {
	for _, tt := range []struct {
		name                      string
		rate, least, preempted    float64
		measured, atMost, atLeast float64
	}{
		{"regions of 31 us", 8_190, 31e-6, 280, 14_200, 15_000, 13_000},
		{"the same, each has to wait", 127, 31e-6, 263, 14_500, 15_000, 13_000},
		{"short ones, gangs in step: spinning is better", 256_000, 1.1e-6, 290, 123_000, 130_000, 90_000},
		{"short ones, out of step", 25_000, 1.1e-6, 304, 127_000, 130_000, 90_000},
		{"no region was undisturbed", 127, 4e-3, 263, 14_500, 1e6, 200},
	} {
		t.Run(tt.name, func(t *testing.T) {
			l := spinning()
			l.Yields = tt.preempted
			r := regions{seconds: 1, count: tt.rate, least: tt.least}
			if got := r.predicted(l); got < tt.atLeast || got > tt.atMost {
				t.Errorf("predicted %.0f regions/s, measured %.0f, want %.0f to %.0f", got, tt.measured, tt.atLeast, tt.atMost)
			}
		})
	}
	if got := (regions{}).predicted(spinning()); got != 0 {
		t.Errorf("predicted %v of nothing", got)
	}
}

func TestSpins(t *testing.T) {
	for _, tt := range []struct {
		name   string
		change func(*load)
		want   bool
	}{
		{"two teams", func(*load) {}, true},
		{"sleeps already", func(l *load) { l.Sleeps = 26_000 }, false},
		{"yields already", func(l *load) { l.Yields = 200_000 }, false},
		{"alone", func(l *load) { l.Run, l.Wait = 1.93, 0.06 }, false},
		{"more threads than CPUs: libgomp does not let them spin", func(l *load) { l.Threads = 8 }, false},
		{"one thread", func(l *load) { l.Threads = 1 }, false},
		{"rests", func(l *load) { l.Run, l.Wait = 0.1, 0.3 }, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			l := spinning()
			tt.change(&l)
			if got := l.spins(); got != tt.want {
				t.Errorf("spins %v, want %v", got, tt.want)
			}
		})
	}
}

func TestRegionsAddUp(t *testing.T) {
	var r regions
	r.add(0, 1)
	r.time(sdk.Aggregate{})
	r.add(10, 1)
	r.time(sdk.Aggregate{Count: 10, Min: 2000})
	r.add(20, 1)
	r.time(sdk.Aggregate{Count: 20, Min: 3000})
	if r.rate() != 10 || math.Abs(r.least-2e-6) > 1e-12 {
		t.Errorf("%+v, want 10 a second, 2 us at least", r)
	}
}
