// SPDX-License-Identifier: Apache-2.0

package affinity

import (
	"math"
	"testing"
	"time"

	"github.com/attune-hpc/attune/tunlets/sdk"
)

func TestSpread(t *testing.T) {
	on := func(cpus sdk.CPUList, run, wait float64) demand {
		return demand{run: run, wait: wait, bound: cpus != "", allowed: cpus}
	}
	for _, tt := range []struct {
		name    string
		threads []demand
		cpus    int
		gain    float64
		worth   bool
	}{
		{"two on one of two CPUs", []demand{on("0", 0.5, 0.5), on("0", 0.5, 0.5)}, 2, 2, true},
		{"eight on one of four", []demand{
			on("2", 0.125, 0.875), on("2", 0.125, 0.875), on("2", 0.125, 0.875), on("2", 0.125, 0.875),
			on("2", 0.125, 0.875), on("2", 0.125, 0.875), on("2", 0.125, 0.875), on("2", 0.125, 0.875),
		}, 4, 4, true},
		{"others of the job have the other CPU", []demand{on("0", 0.5, 0.5), on("0", 0.5, 0.5), on("", 1, 0), on("", 1, 0)}, 2, 1, false},
		{"a stranger has half of its CPU", []demand{on("0", 0.5, 0.5)}, 2, 2, true},
		{"strangers have half of each CPU", []demand{on("0", 0.5, 0.5), on("1", 0.5, 0.5)}, 2, 1, false},
		{"does not wait", []demand{on("0", 1, 0), on("1", 1, 0)}, 2, 1, false},
		{"not bound", []demand{on("", 0.5, 0.5), on("", 0.5, 0.5)}, 2, 1, false},
		{"nothing known", nil, 2, 1, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := spreadOver(tt.threads, tt.cpus)
			if math.Abs(s.gain()-tt.gain) > 1e-9 || s.worthwhile() != tt.worth {
				t.Errorf("gain %v, worth a try: %v, want %v and %v", s.gain(), s.worthwhile(), tt.gain, tt.worth)
			}
		})
	}
}

func TestOnCore(t *testing.T) {
	for _, tt := range []struct {
		allowed, usable sdk.CPUList
		want            bool
	}{{"0", "0-1", true}, {"0,32", "0-63", true}, {"0-1", "0-3", false}, {"0-3", "0-63", false}} {
		if got := onCore(tt.allowed, tt.usable); got != tt.want {
			t.Errorf("%q of %q is one core: %v", tt.allowed, tt.usable, got)
		}
	}
}

func TestCovers(t *testing.T) {
	for _, tt := range []struct {
		allowed, usable sdk.CPUList
		want            bool
	}{{"0-3", "0-3", true}, {"0-3", "1,2", true}, {"0", "0-1", false}, {"", "0", false}} {
		if got := covers(tt.allowed, tt.usable); got != tt.want {
			t.Errorf("%q covers %q: %v", tt.allowed, tt.usable, got)
		}
	}
}

// Readings that were not made at the same time say nothing.
func TestApart(t *testing.T) {
	at := func(seconds int) time.Time { return time.Unix(int64(seconds), 0) }
	a := &task{seats: []seat{{at(1), 0}, {at(2), 0}, {at(4), 1}}}
	b := &task{seats: []seat{{at(1), 1}, {at(3), 0}, {at(4), 1}}}
	if got := apart(a, b, 2); got != 0.5 {
		t.Errorf("apart %v, want 0.5", got)
	}
	if got := apart(a, b, 3); got != 0 {
		t.Errorf("apart %v by two readings where three are needed", got)
	}
}
