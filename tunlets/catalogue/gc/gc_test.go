// SPDX-License-Identifier: Apache-2.0

package gc_test

import (
	"fmt"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/attune-hpc/attune/proto/attune/series"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
	"github.com/attune-hpc/attune/tunlets/catalogue"
	"github.com/attune-hpc/attune/tunlets/sdk"
	"github.com/attune-hpc/attune/tunlets/sdk/samplefilter"
	"github.com/attune-hpc/attune/tunlets/tunlettest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestSuite(t *testing.T) {
	tunlettest.Suite(t, catalogue.New("gc"), func() *tunlettest.Process { return collecting(100, 41*time.Millisecond) })
}

// A program that collects wakes the tunlet, and one that does not does not; where nobody
// can see what it does, computing is enough. Figures are those of docs/tunlets/gc.md.
func TestWakes(t *testing.T) {
	for _, tt := range []struct {
		name    string
		visits  float64 // per second that it runs; less than 0: they cannot be read
		running float64 // of a CPU
		seconds float64 // until it wakes; 0: it does not in 5 s
	}{
		{"python_gc.py", 12.2e6, 1, 0.2},
		{"python_yaml.py", 0.41e6, 1, 0.2},
		{"python_yaml.py, where others run", 0.41e6, 0.4, 0.2},
		{"few large objects", 0.15e6, 1, 1},
		{"json.tool of numbers", 0.02e6, 1, 0},
		{"numpy", 0.02e6, 1, 0},
		{"SQLite", 0.005e6, 1, 0},
		{"none", 0, 1, 0},
		{"one that sleeps", 12.2e6, 0.1, 0},
		{"another version", -1, 1, 0.2},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var w samplefilter.Wakes
			w.Process(1, []string{"/usr/bin/python3.11"})
			w.Add("gc", tunlettest.New(t, catalogue.New("gc")).StartSession().GetWake())
			woken := 0.0
			for round := 0; round <= 50 && woken == 0; round++ {
				seconds := float64(round) / 10
				readings := []series.Reading{{ID: series.RunTime, Value: uint64(tt.running * seconds * 1e9)}}
				if tt.visits >= 0 {
					readings = append(readings, series.Reading{ID: series.PythonGCVisits, Value: uint64(tt.visits * tt.running * seconds)})
				}
				sample := &attunev1.Sample{Process: 1, Tables: []*attunev1.Table{series.SignalTable(readings...)}}
				if by, _ := w.Round(&attunev1.SampleBatch{UnixNano: int64(seconds * 1e9), Samples: []*attunev1.Sample{sample}}); len(by) > 0 {
					woken = seconds
				}
			}
			if woken != tt.seconds {
				t.Errorf("woken after %v s, want %v", woken, tt.seconds)
			}
		})
	}
}

// collecting takes a thousand blocks a second, and in each round of 50 ms so
// many collections, which take so long together.
func collecting(collections int, took time.Duration) *tunlettest.Process {
	p := tunlettest.Computing()
	p.Executable = "/usr/bin/python3.11"
	p.Objects = []string{"/usr/bin/python3.11", "/usr/lib/x86_64-linux-gnu/libc.so.6"}
	p.Rates[sdk.RunTime], p.Rates[sdk.RunqueueWait] = 1e9, 0
	p.Details = available(64 << 30)
	p.Hits = func(*attunev1.MeasurePoint) (float64, uint64) { return 500, 1000 }
	p.Records = func(now int64) (hits []tunlettest.Hit) {
		for i := range collections {
			each := took.Nanoseconds() / int64(collections)
			begin := now + int64(i)*each
			hits = append(hits,
				tunlettest.Hit{Point: fmt.Sprintf("collection@%d", p.Handle), Thread: 1, Monotonic: begin},
				tunlettest.Hit{Point: fmt.Sprintf("collection.until@%d", p.Handle), Thread: 1, Monotonic: begin + each})
		}
		return hits
	}
	return p
}

// available is so many bytes of memory that a process could still take.
func available(bytes uint64) func(time.Duration) *sdk.Details {
	return func(time.Duration) *sdk.Details {
		return &sdk.Details{Memory: &sdk.MemoryDetails{AvailableBytes: bytes}}
	}
}

// 121 times the threshold may be garbage at one time, of 200 bytes each: half of what is
// available is left, by all programs together.
func TestMemoryBoundsTheThreshold(t *testing.T) {
	for _, tt := range []struct {
		name      string
		available uint64
		programs  int
		threshold uint64 // 0: none is proposed
	}{
		{"plenty", 64 << 30, 1, 200_000},
		{"2 GiB", 2 << 30, 1, 44_369},
		{"2 GiB for two", 2 << 30, 2, 22_184},
		{"too little", 256 << 20, 1, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h := tunlettest.Start(t, catalogue.New("gc"), nil)
			for range tt.programs {
				p := collecting(100, 41*time.Millisecond)
				p.Details = available(tt.available)
				h.StartProcess(p)
			}
			h.Run(2 * time.Second)
			if tt.threshold == 0 {
				if len(h.Proposals) > 0 {
					t.Errorf("proposals %v, want none", h.Proposals)
				}
				return
			}
			if len(h.Proposals) != tt.programs {
				t.Fatalf("%d proposals, want %d", len(h.Proposals), tt.programs)
			}
			last := h.Proposals[tt.programs-1].GetChanges()[0].GetAction().GetSetting().GetValue().GetUnsigned()
			if last != tt.threshold {
				t.Errorf("threshold %d, want %d: %v", last, tt.threshold, h.Proposals[0].GetChanges())
			}
		})
	}
}

func TestProposes(t *testing.T) {
	for _, tt := range []struct {
		name        string
		collections int           // in a round of 50 ms
		took        time.Duration // together
		wait        float64       // for a CPU, ns/s
		gain        float64       // 0: none is proposed
	}{
		{"measured: 82 % of the time", 100, 41 * time.Millisecond, 0, 5.5},
		{"a third of the time", 100, 17 * time.Millisecond, 0, 1.5},
		{"a third of the time, waiting for a CPU half of it", 50, 17 * time.Millisecond, 1e9, 1.2},
		{"little of the time", 100, 5 * time.Millisecond, 0, 0},
		{"much of the time, for others have the CPU", 100, 8 * time.Millisecond, 1e9, 0},
		{"none", 0, 0, 0, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h := tunlettest.Start(t, catalogue.New("gc"), nil)
			p := collecting(tt.collections, tt.took)
			p.Rates[sdk.RunqueueWait] = tt.wait
			h.StartProcess(p)
			h.Run(2 * time.Second)
			if (len(h.Proposals) == 1) != (tt.gain > 0) {
				t.Fatalf("proposals %v, want one: %v", h.Proposals, tt.gain > 0)
			}
			if tt.gain > 0 {
				checkProposal(t, h.Proposals[0], tt.gain)
			}
		})
	}
}

func checkProposal(t *testing.T, p tunlettest.Proposed, gain float64) {
	t.Helper()
	c := p.GetChanges()[0]
	if len(p.GetChanges()) != 1 || c.GetKnob() != "python.gc.threshold0" || c.GetAction().GetSetting().GetValue().GetUnsigned() != 200_000 {
		t.Errorf("changes %v, want python.gc.threshold0 = 200000", p.GetChanges())
	}
	if g := p.GetPredictedGain(); g < gain*0.9 || g > gain*1.1 {
		t.Errorf("predicted gain %.2f, want %.2f", g, gain)
	}
}

// Without the kernel's probes nothing is known of collections.
func TestUnprivileged(t *testing.T) {
	h := tunlettest.New(t, catalogue.New("gc"))
	h.Refuse = func(m *attunev1.MeasurePoint, _ *tunlettest.Process) string {
		if m.GetUsdt() != nil {
			return "static probes need root"
		}
		return ""
	}
	h.StartSession()
	h.StartProcess(collecting(100, 41*time.Millisecond))
	h.Run(5 * time.Second)
	if len(h.Proposals) != 0 || len(h.Remarks) != 1 || len(h.Points()) != 0 {
		t.Errorf("proposals %v, remarks %v, points %v; want a remark only", h.Proposals, h.Remarks, h.Points())
	}
}
