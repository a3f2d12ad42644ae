// SPDX-License-Identifier: Apache-2.0

package malloc

import (
	"math"
	"testing"
	"time"

	"github.com/attune-hpc/attune/tunlets/sdk"
)

// span is a second in which a process ran on one CPU.
func span(faults, growth, system float64) sdk.Span {
	from := sdk.Sample{At: time.Unix(1, 0)}.With(sdk.MinorFaults, 0).With(sdk.ResidentBytes, 1e9).
		With(sdk.RunTime, 0).With(sdk.CPUSystem, 0)
	to := sdk.Sample{At: time.Unix(2, 0)}.With(sdk.MinorFaults, faults).With(sdk.ResidentBytes, 1e9+growth).
		With(sdk.RunTime, 1e9).With(sdk.CPUSystem, system*1e9)
	return sdk.SpanBetween(from, to)
}

func TestLoad(t *testing.T) {
	for _, tt := range []struct {
		name                   string
		faults, growth, system float64
		pages                  float64
		churn, share           float64
	}{
		{"measured storm", 807_000, 0, 0.9, 1, 1, 0.9},
		{"first touch", 250_000, 250_000 * 4096, 0.4, 1, 0, 0},
		{"half grows", 200_000, 100_000 * 4096, 0.4, 1, 0.5, 0.2},
		{"memory shrinks", 200_000, -1e8, 0.4, 1, 1, 0.4},
		{"system time not seen", 100_000, 0, 0, 1, 1, 0.15},
		{"system time for something else", 10_000, 0, 0.9, 1, 1, 0.04},
		{"huge pages", 4_500, 0, 0.9, 512, 1, 0.9},
		{"never all", 1e7, 0, 1, 1, 1, maxShare},
		{"no faults", 0, 0, 0.5, 1, 0, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			l, ok := loadOf(span(tt.faults, tt.growth, tt.system))
			if !ok {
				t.Fatal("no load")
			}
			if math.Abs(l.churn-tt.churn) > 1e-9 || math.Abs(l.share(tt.pages)-tt.share) > 1e-9 {
				t.Errorf("churn %v, share %v, want %v, %v", l.churn, l.share(tt.pages), tt.churn, tt.share)
			}
		})
	}
}

// Where blocks explain the faults, their cost is what reads and writes leave of
// the system time.
func TestConfirmedShare(t *testing.T) {
	for _, tt := range []struct {
		name   string
		load   load
		pages  float64
		wanted float64
	}{
		{"a busy virtual machine", load{faults: 14_000, churn: 1, run: 0.2, system: 0.182}, 1, 0.91},
		{"reads take most of it", load{faults: 14_000, churn: 1, run: 0.2, system: 0.182, files: 0.12}, 1, 0.31},
		{"reads are not known", load{faults: 14_000, churn: 1, run: 0.2, system: 0.182, files: 0.182}, 1, 0.28},
		{"no fault costs as much", load{faults: 1_000, churn: 1, run: 1, system: 0.9}, 1, 0.04},
		{"system time not seen", load{faults: 100_000, churn: 1, run: 1}, 1, 0.15},
		{"no faults", load{churn: 1, run: 1, system: 0.9}, 1, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := tt.load.confirmedShare(tt.pages); math.Abs(got-tt.wanted) > 1e-9 {
				t.Errorf("%v, want %v", got, tt.wanted)
			}
		})
	}
}

// What two samples say of a process that takes memory and gives it back is chance.
func TestGrows(t *testing.T) {
	l := load{faults: 100_000, churn: 0.6}
	for _, tt := range []struct{ bytes, want float64 }{
		{0, 1}, {-1e8, 1}, {1e5 * pageBytes * 0.1, 0.9}, {1e5 * pageBytes, 0.6},
	} {
		if got := l.grows(tt.bytes).churn; math.Abs(got-tt.want) > 1e-9 {
			t.Errorf("growth of %v B/s: churn %v, want %v", tt.bytes, got, tt.want)
		}
	}
	if got := (load{}).grows(1).churn; got != 0 {
		t.Errorf("without faults: churn %v", got)
	}
}

func TestFileSeconds(t *testing.T) {
	sample := func(second int64, calls, bytes float64) sdk.Sample {
		return sdk.Sample{At: time.Unix(second, 0)}.With(sdk.ReadCalls, calls).With(sdk.WriteCalls, calls).
			With(sdk.ReadBytes, bytes).With(sdk.WrittenBytes, bytes)
	}
	span := sdk.SpanBetween(sample(1, 0, 0), sample(2, 50_000, 4e8))
	if got := fileSeconds(span, 1); math.Abs(got-0.3) > 1e-9 {
		t.Errorf("%v s, want 0.1 for the calls and 0.2 for the bytes", got)
	}
	if got := fileSeconds(span, 0.05); got != 0.05 {
		t.Errorf("%v s, want no more than there is", got)
	}
	if got := fileSeconds(sdk.Span{}, 0.5); got != 0.5 {
		t.Errorf("%v s of unknown reads, want all", got)
	}
}

func TestLoadNeedsSignals(t *testing.T) {
	if _, ok := loadOf(sdk.Span{}); ok {
		t.Error("a load of nothing")
	}
	idle := sdk.SpanBetween(sdk.Sample{At: time.Unix(1, 0)}.With(sdk.MinorFaults, 0),
		sdk.Sample{At: time.Unix(2, 0)}.With(sdk.MinorFaults, 1e6))
	if _, ok := loadOf(idle); ok {
		t.Error("a load without CPU time and memory")
	}
}

func TestTicksServeWithoutSchedulerTimes(t *testing.T) {
	from := sdk.Sample{At: time.Unix(1, 0)}.With(sdk.CPUUser, 0).With(sdk.CPUSystem, 0)
	to := sdk.Sample{At: time.Unix(2, 0)}.With(sdk.CPUUser, 1e8).With(sdk.CPUSystem, 3e8)
	if got, ok := cpu(sdk.SpanBetween(from, to)); !ok || math.Abs(got-0.4) > 1e-9 {
		t.Errorf("CPU %v %v, want 0.4", got, ok)
	}
}

// TestGain compares the model with what was measured on the machine that its
// constant comes from: gain = 1/(1 - minflt/s x 1.5 us).
func TestGain(t *testing.T) {
	l := load{faults: 600_000, churn: 1, run: 1}
	if g := gain(l.share(1)); math.Abs(g-10) > 1e-6 {
		t.Errorf("gain %v for 600,000 faults/s, want 10", g)
	}
}

func TestBlocks(t *testing.T) {
	small := sdk.Aggregate{Count: 100, Sum: 100 * mib, Histogram: make([]uint64, 22)}
	small.Histogram[21] = 100
	huge := sdk.Aggregate{Count: 1, Sum: 64 * mib, Histogram: make([]uint64, 28)}
	huge.Histogram[27] = 1
	b := blocks{seconds: 1}
	b.add(small)
	b.add(huge)
	if b.count != 101 || b.bytes != 164*mib || b.helped != 100*mib {
		t.Errorf("blocks %+v, want 101 of 164 MiB, 100 MiB of them helped", b)
	}
	l := load{faults: 200 * mib / pageBytes, churn: 1, run: 1}
	if e := b.explains(l, b.helped); math.Abs(e-0.5) > 1e-9 {
		t.Errorf("explains %v, want a half", e)
	}
	if e := b.likely(l, b.helped); math.Abs(e-0.5/0.6) > 1e-9 {
		t.Errorf("likely %v, want more than what is explained", e)
	}
	if e := b.likely(l, b.bytes); e != 1 {
		t.Errorf("likely %v, want all", e)
	}
	if p := b.pagesPerFault(l); math.Abs(p-0.82) > 1e-9 {
		t.Errorf("pages per fault %v, want 0.82", p)
	}
	if (blocks{}).explains(l, 1) != 0 || b.explains(load{}, 1) != 0 {
		t.Error("nothing explains something")
	}
}

func TestSettings(t *testing.T) {
	for _, tt := range []struct {
		name         string
		room, arenas uint64
		want         settings
		ok           bool
	}{
		{"no bound", unbounded, 1, settings{32 * mib, gib, 64 * mib}, true},
		{"plenty", 4 * gib, 1, settings{32 * mib, gib, 64 * mib}, true},
		{"one gibibyte", gib, 1, settings{32 * mib, 512 * mib, 32 * mib}, true},
		{"least", 128 * mib, 1, settings{32 * mib, 64 * mib, 4 * mib}, true},
		{"too little", 127 * mib, 1, settings{}, false},
		{"none", 0, 1, settings{}, false},
		{"nine arenas", 2 * gib, 9, settings{32 * mib, 512 * mib, 32 * mib}, true},
		{"nine arenas, no bound", unbounded, 9, settings{32 * mib, gib, 64 * mib}, true},
		{"nine arenas, too little", gib, 9, settings{}, false},
		{"arenas of more than there is", gib, 1 << 20, settings{}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got, ok := settingsFor(tt.room, tt.arenas); got != tt.want || ok != tt.ok {
				t.Errorf("settings %+v %v, want %+v %v", got, ok, tt.want, tt.ok)
			}
		})
	}
}
