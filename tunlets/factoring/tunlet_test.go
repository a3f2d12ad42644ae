// SPDX-License-Identifier: Apache-2.0

package factoring

import (
	"maps"
	"math"
	"math/bits"
	"slices"
	"testing"
	"time"

	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
	"github.com/attune-hpc/attune/tunlets/kit/masterworker"
	"github.com/attune-hpc/attune/tunlets/sdk"
	"github.com/attune-hpc/attune/tunlets/tunlettest"
)

func told() map[string]string {
	return map[string]string{"variable": "factor", "round": "play_round", "dispatch": "take_piece", "task": "work_item"}
}

func TestSuite(t *testing.T) { tunlettest.Suite(t, New) }

// The harness has no keys: the suite finds nothing to propose, but all else is as in
// a program with the problem.
func TestSuiteConfigured(t *testing.T) {
	tunlettest.SuiteWith(t, told(), New)
}

// What the tags of the options say is what the code goes by.
func TestOptionsAreThoseOfTheCode(t *testing.T) {
	kind := slices.IndexFunc(sdk.OptionsOf[options](), func(o sdk.Option) bool {
		return o.Name == "kind" && slices.Equal(o.Choices, []string{KindFactor, KindChunk})
	})
	if kind < 0 {
		t.Errorf("%+v", sdk.OptionsOf[options]())
	}
}

func made(t *testing.T, options map[string]string) *Tunlet {
	t.Helper()
	tunlet := New().(*Tunlet)
	all := map[string]string{"kind": KindFactor, "size": "4"}
	maps.Copy(all, told())
	maps.Copy(all, options)
	if err := tunlet.Configure(all); err != nil {
		t.Fatal(err)
	}
	return tunlet
}

func TestPlan(t *testing.T) {
	for _, tt := range []struct {
		name        string
		kind        string
		value       float64
		slow        float64 // how many times as long the first worker needs
		handOut     float64
		least, most float64 // of the value
		gain        float64 // at least; 0: none
	}{
		{"equal shares and a slow worker", KindFactor, 1, 4, 1e-6, 0.05, 0.6, 2.3},
		{"equal shares of equal workers", KindFactor, 1, 1, 1e-4, 1, 1, 0},
		{"large pieces and a slow worker", KindChunk, 128, 4, 1e-6, 1, 16, 2.3},
		{"small pieces that are dear", KindChunk, 1, 1, 1e-3, 32, 128, 1.8},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tunlet := made(t, map[string]string{"kind": tt.kind})
			const items, item = 256, 1e-3
			tunlet.items.add(masterworker.Worker{Process: 1, Thread: 1}, alike(leastItems, item*tt.slow))
			tunlet.items.add(masterworker.Worker{Process: 1, Thread: 2}, alike(leastItems, item))
			r := Round{Items: items, HandOut: tt.handOut, Times: tunlet.items.times()}
			m := masterworker.Measured{
				Seconds: 100 * tunlet.now(r, tt.value), Rounds: 100, Value: tt.value,
				Tasks: 100 * items, TaskSeconds: 1, Dispatches: 100, DispatchSeconds: 100 * tt.handOut,
			}
			plan, ok := tunlet.Plan(m)
			if tt.gain == 0 {
				if ok && plan.Gain >= minGain {
					t.Errorf("plans %v for %v times", plan.Value, plan.Gain)
				}
				return
			}
			if !ok || plan.Gain < tt.gain {
				t.Fatalf("gain %v, %v; want %v at least", plan.Gain, ok, tt.gain)
			}
			mean, deviation := moments(r.Times)
			if got, _ := tunlet.best(r, mean, deviation); got < tt.least || got > tt.most {
				t.Errorf("%s %v, want %v to %v", tt.kind, got, tt.least, tt.most)
			}
		})
	}
}

// alike are items that all take so many seconds.
func alike(count uint64, seconds float64) sdk.Aggregate {
	value := uint64(seconds * 1e9)
	a := sdk.Aggregate{Count: count, Sum: count * value, Histogram: make([]uint64, bits.Len64(value)+1)}
	a.Histogram[bits.Len64(value)] = count
	return a
}

func TestPlanNeedsWorkers(t *testing.T) {
	tunlet := made(t, nil)
	tunlet.items.add(masterworker.Worker{Process: 1, Thread: 1}, alike(leastItems, 1e-3))
	tunlet.items.add(masterworker.Worker{Process: 1, Thread: 2}, alike(leastItems-1, 1e-3))
	m := masterworker.Measured{Seconds: 1, Rounds: 10, Value: 1, Tasks: 100, Dispatches: 20}
	if _, ok := tunlet.Plan(m); ok {
		t.Error("plans for a worker of which next to nothing is known")
	}
	tunlet.items.add(masterworker.Worker{Process: 1, Thread: 2}, alike(1, 4e-3))
	if _, ok := tunlet.Plan(m); !ok {
		t.Error("plans nothing for two workers, one of them slow")
	}
	m.Value = 0 // as of one that differs from round to round
	if _, ok := tunlet.Plan(m); ok {
		t.Error("plans without knowing what the variable is")
	}
}

// Items of another setting are not mixed with those of the next measurement.
func TestItemsAreOfOneMeasurement(t *testing.T) {
	tunlet := New().(*Tunlet)
	h := tunlettest.Start(t, func() sdk.Tunlet { return tunlet }, told())
	p := tunlettest.Computing()
	p.Rates[sdk.VoluntarySwitches] = 1000
	p.Hits = func(*attunev1.MeasurePoint) (float64, uint64) { return 100, 1 }
	h.StartProcess(p)
	h.Run(time.Second)
	tunlet.items.add(masterworker.Worker{Process: 1, Thread: 1}, alike(leastItems, 1e-3))
	h.EndProcess(p) // a new measurement begins
	if len(tunlet.items) > 0 {
		t.Errorf("%d workers of the measurement before", len(tunlet.items))
	}
}

// What is drawn has the mean that was measured, and differs as it did.
func TestDraw(t *testing.T) {
	list := items{}
	w := masterworker.Worker{Process: 1}
	list.add(w, alike(300, 1e-6))
	list.add(w, alike(100, 64e-6))
	mean, deviation := moments(list.times())
	if math.Abs(mean-16.75e-6) > 1e-12 || deviation < 20e-6 || deviation > 35e-6 {
		t.Errorf("mean %v, deviation %v; want 16.75 µs and about 27 µs", mean, deviation)
	}
	if mean, deviation := moments([][]float64{{1, 3}, {1, 3}}); mean != 2 || math.Abs(deviation-1) > 1e-9 {
		t.Errorf("mean %v, deviation %v, want 2 and 1", mean, deviation)
	}
}

func TestWorkersAreBounded(t *testing.T) {
	list := items{}
	for i := range 2 * uint64(maxWorkers) {
		list.add(masterworker.Worker{Process: 1, Thread: i}, alike(leastItems, 1e-3))
	}
	if len(list.times()) != maxWorkers {
		t.Errorf("%d workers, want %d at most", len(list), maxWorkers)
	}
}
