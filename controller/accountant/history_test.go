// SPDX-License-Identifier: Apache-2.0

package accountant

import (
	"math"
	"testing"
	"time"
)

// TestHistory: however long it takes, the history is bounded, hides no peak of memory and
// loses no CPU time.
func TestHistory(t *testing.T) {
	var h history
	const looks = 10_000
	for i := range looks {
		resident := uint64(1000)
		if i == 7777 {
			resident = 5000
		}
		h.add(&reading{seconds: float64(i+1) / 100, late: float64(i%3) / 100, taken: taken{cpu: time.Duration(i+1) * 5 * time.Millisecond}, resident: resident}, 10*time.Millisecond)
	}
	h.close(looks/100+1, looks*5*time.Millisecond)
	cpu, seconds, most := 0.0, 0.0, uint64(0)
	for _, m := range h.list {
		if math.Abs(m.Seconds-seconds-m.Span) > 1e-6 {
			t.Fatalf("%+v begins at %v s", m, seconds)
		}
		cpu, seconds, most = cpu+m.Cores*m.Span, m.Seconds, max(most, m.Resident)
	}
	if len(h.list) > maxMoments || math.Abs(cpu-looks*0.005) > 1e-6 || most != 5000 {
		t.Errorf("%d moments, %v s of CPU time, %d bytes at most; want %v s and 5000", len(h.list), cpu, most, looks*0.005)
	}
}

// TestHistoryOfTheEnd: a look may lag by some clock ticks, and the sum at the end does not. What
// comes to light right after the last look is not told as many cores.
func TestHistoryOfTheEnd(t *testing.T) {
	var h history
	for i := range 100 {
		h.add(&reading{seconds: float64(i+1) / 100, taken: taken{cpu: time.Duration(i+1) * 10 * time.Millisecond}, resident: 1000}, 10*time.Millisecond)
	}
	h.close(1.001, time.Second+21*time.Millisecond)
	cpu := 0.0
	for _, m := range h.list {
		if cpu += m.Cores * m.Span; m.Cores > 1.25 {
			t.Errorf("%+v of a program with one thread", m)
		}
	}
	if math.Abs(cpu-1.021) > 1e-6 {
		t.Errorf("%v s of CPU time, want 1.021", cpu)
	}
}

// TestLateLook: what was taken while a look waited for a CPU is not told as many cores before that,
// and is not lost.
func TestLateLook(t *testing.T) {
	var h history
	h.add(&reading{seconds: 0.1, taken: taken{cpu: 100 * time.Millisecond}}, 0)
	h.add(&reading{seconds: 0.2, late: 1, taken: taken{cpu: 1200 * time.Millisecond}}, 0)
	h.add(&reading{seconds: 1.3, taken: taken{cpu: 1300 * time.Millisecond}}, 0)
	for _, m := range h.list {
		if m.Cores > 1.001 {
			t.Errorf("%+v of a program with one thread", m)
		}
	}
	h.close(1.4, 1400*time.Millisecond)
	if last := h.list[len(h.list)-1]; math.Abs(last.Seconds-1.4) > 1e-6 || h.cpu < 1399*time.Millisecond {
		t.Errorf("%v of 1.4 s are told: %+v", h.cpu, h.list)
	}
}
