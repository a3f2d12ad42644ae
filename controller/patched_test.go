// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"bytes"
	"iter"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/attune-hpc/attune/internal/objfile"
	"github.com/attune-hpc/attune/internal/testing/patience"
	"github.com/attune-hpc/attune/internal/testing/targets"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// patchedThreads is THREADS of testdata/patched.c.
const patchedThreads = 4

// patchedFunctions of testdata/patched.c with their calls per round.
var patchedFunctions = map[string]uint64{
	"p_short": 1, "p_static": 1, "p_relative": 1, "p_recursive": 4, "p_floats": 1, "p_varargs": 1,
	"p_struct": 1, "p_seventh": 1, "p_setjmp": 1, "p_jumps": 1, "p_loop": 1, "p_handler": 1,
}

var compilations = []struct {
	name  string
	flags []string
	// least is how many functions can be patched wherever the kernel puts
	// things. Jumps of the others lead where memory may be.
	least int
}{
	{"not optimised", []string{"-O0"}, 8},
	{"optimised", []string{"-O2", "-fno-optimize-sibling-calls", "-fno-tree-tail-merge", "-fno-inline"}, 3},
	{"control-flow protection", []string{"-O1", "-fcf-protection=full"}, 3},
	{"fixed address", []string{"-O1", "-no-pie", "-fno-pie"}, 1},
}

// codeOf reads the code of all functions of the test program.
func codeOf(t *testing.T, pid int) (code []byte) {
	t.Helper()
	for _, name := range slices.Sorted(maps.Keys(patchedFunctions)) {
		found, err := objfile.Resolve(pid, "patched*", name, objfile.Function)
		if err != nil {
			t.Fatal(err)
		}
		function := make([]byte, found.Symbol.Size)
		if err := targets.ReadMemory(pid, found.Address, function); err != nil {
			t.Fatal(err)
		}
		code = append(code, function...)
	}
	return code
}

// addPoints has a point on each of some functions, and returns their names by the points'
// indexes.
func (b *bench) addPoints(t *testing.T, names iter.Seq[string], place attunev1.Place) map[uint32]string {
	t.Helper()
	points := make(map[uint32]string)
	for name := range names {
		index := uint32(len(points) + 1)
		points[index] = name
		spec := call(name, false)
		spec.Place = place
		b.addPoint(t, index, spec)
	}
	return points
}

// endRight ends a program that computes what it always does when nothing is patched.
func endRight(t *testing.T, target *targets.Target) {
	t.Helper()
	if got := target.Ask(t, "10"); got != "0 wrong" {
		t.Errorf("results without patches: %s", got)
	}
	target.EndWell(t)
}

// Every direct call is counted, whatever the entry looks like, and the program
// computes what it always does.
func TestPatchedEntriesCountEveryCall(t *testing.T) {
	const rounds = 500
	for _, test := range compilations {
		t.Run(test.name, func(t *testing.T) {
			program := targets.Build(t, "testdata/patched.c", test.flags...)
			b := start(t)
			b.sampleEvery(t, 20*time.Millisecond)
			points := b.addPoints(t, maps.Keys(patchedFunctions), attunev1.Place_PLACE_UNSPECIFIED)
			target := targets.Start(t, program, b.controller.Environment()...)
			placed := map[string]*attunev1.PointStatus{}
			for range points {
				// What takes longer than the start gate is placed at a safe point.
				s := b.anyPlacedWhile(t, func() { target.Ask(t, "0") })
				placed[points[s.GetPoint()]] = s
			}
			var patches []uint32
			for name, s := range placed {
				switch {
				case s.GetMechanism() == "patch":
					patches = append(patches, s.GetPoint())
				case strings.Contains(s.GetReason(), "code cannot be patched"):
					t.Logf("%s: %s", name, s.GetReason())
				default:
					t.Errorf("%s: %v", name, s)
				}
			}
			if len(patches) < test.least {
				t.Errorf("%d of %d functions are patched, want at least %d", len(patches), len(points), test.least)
			}
			if got := target.Ask(t, "500"); got != "0 wrong" {
				t.Errorf("results under patches: %s", got)
			}
			counted := b.removed(t, patches...)
			for index, name := range points {
				want := patchedFunctions[name] * rounds * patchedThreads
				if got := counted[index]; placed[name].GetMechanism() == "patch" && got != want {
					memory := b.controller.members.List()[0].Memory()
					t.Errorf("%s: counted %d calls of %d, %d without a slot", name, got, want, memory.App().LostNoSlot)
				}
			}
			b.stop(t)
			endRight(t, target)
		})
	}
}

// everyPatched is a point on all functions of testdata/patched.c in a process.
func everyPatched(process uint64) *attunev1.MeasurePoint {
	return &attunev1.MeasurePoint{Id: "all", Processes: []uint64{process}, Target: &attunev1.MeasurePoint_Function{
		Function: &attunev1.FunctionTarget{Object: "patched*", Symbols: []string{"p_*"}},
	}}
}

// anyPlaced waits for the status of whichever point comes.
func (b *bench) anyPlaced(t *testing.T) *attunev1.PointStatus {
	t.Helper()
	return b.anyPlacedWhile(t, func() {})
}

// anyPlacedWhile does something again and again, which brings a program to its
// safe points, until a point's status comes.
func (b *bench) anyPlacedWhile(t *testing.T, again func()) *attunev1.PointStatus {
	t.Helper()
	if len(b.early) > 0 {
		first := b.early[0]
		b.early = b.early[1:]
		return first
	}
	deadline := time.After(patience.Limit)
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case answer := <-b.answers:
			if s := answer.GetPoint(); s != nil {
				return s
			}
		case <-tick.C:
			again()
		case <-deadline:
			t.Fatal("waited in vain for a status")
		}
	}
}

// removed takes points out and returns what each of them counted since the last
// call of delivered.
func (b *bench) removed(t *testing.T, points ...uint32) map[uint32]uint64 {
	t.Helper()
	b.requests <- b.removing(points...)
	for gone := map[uint32]bool{}; len(gone) < len(points); {
		s := b.anyPlaced(t)
		if s.GetState() == attunev1.PointState_POINT_STATE_REMOVED && slices.Contains(points, s.GetPoint()) {
			gone[s.GetPoint()] = true
		}
	}
	return b.delivered(t)
}

// delivered returns what points counted or recorded as far as the controller has queued it by
// now: that of a point which is gone is, to the last call.
func (b *bench) delivered(t *testing.T) map[uint32]uint64 {
	t.Helper()
	const mark = 1
	b.controller.publish(&attunev1.PublishRequest{Event: &attunev1.PublishRequest_Aggregates{
		Aggregates: &attunev1.AggregateBatch{FromUnixNano: mark},
	}})
	counted := map[uint32]uint64{}
	event(t, b, "mark at the end of the queue", func(m *attunev1.PublishRequest) (bool, bool) {
		for _, a := range m.GetAggregates().GetAggregates() {
			counted[a.GetPoint()] += a.GetCount()
		}
		for r := range attunev1.AllRecords(m.GetRecords().GetRecords()) {
			counted[uint32(r.Point)]++
		}
		return true, m.GetAggregates().GetFromUnixNano() == mark
	})
	return counted
}

// What is not patched because threads cannot be stopped for the moment is tried again.
func TestBusyProcessIsTriedAgain(t *testing.T) {
	const busy = "runs in its memory"
	program := targets.Build(t, "testdata/patched.c", compilations[1].flags...)
	b := start(t)
	target := targets.Start(t, program, b.controller.Environment()...)
	process := b.withDMLib(t, target.PID)
	target.Ask(t, "hammer")
	target.Ask(t, "share")
	b.addPoint(t, 1, everyPatched(process.GetHandle()))
	some := b.placed(t, 1)
	name := regexp.MustCompile(`(?m)^(\w+): .*` + busy).FindStringSubmatch(some.GetReason())
	if name == nil {
		t.Fatalf("not busy: %v", some)
	}
	one := call(name[1], false)
	one.Processes = []uint64{process.GetHandle()}
	b.addPoint(t, 2, one)
	if s := b.placed(t, 2); s.GetState() != attunev1.PointState_POINT_STATE_REFUSED || !strings.Contains(s.GetReason(), busy) {
		t.Fatalf("not refused because the process is busy: %v", s)
	}
	target.Ask(t, "unshare")
	for better := map[uint32]bool{}; len(better) < 2; {
		s := b.anyPlaced(t)
		if s.GetMechanism() == "patch" && !strings.Contains(s.GetReason(), busy) {
			better[s.GetPoint()] = true // a try may come too early, or find threads that do not stop
		}
	}
	if got := target.Ask(t, "halt"); got != "0 wrong" {
		t.Errorf("results: %s", got)
	}
}

// Patches come and go under the feet of threads that call the functions all
// the time, and leave nothing behind.
func TestPatchesComeAndGo(t *testing.T) {
	rounds := targets.Fewer(100) // where whole jumps are written, all threads are stopped for each
	for _, test := range compilations[:2] {
		t.Run(test.name, func(t *testing.T) {
			program := targets.Build(t, "testdata/patched.c", test.flags...)
			b := start(t)
			target := targets.Start(t, program, b.controller.Environment()...)
			process := b.withDMLib(t, target.PID)
			before := codeOf(t, target.PID)
			target.Ask(t, "hammer")
			add, remove := b.adding(1, everyPatched(process.GetHandle())), b.removing(1)
			for range rounds {
				b.requests <- add
				if s := b.anyPlaced(t); s.GetMechanism() != "patch" || len(s.GetSymbols()) < test.least {
					t.Fatalf("point: %v", s)
				}
				b.requests <- remove
				for s := b.anyPlaced(t); s.GetState() != attunev1.PointState_POINT_STATE_REMOVED; s = b.anyPlaced(t) {
					if s.GetMechanism() != "patch" { // what was busy came later
						t.Fatalf("point: %v", s)
					}
				}
			}
			// A jump stays until the threads can be stopped, and is taken out then.
			patience.Until(t, "the code as it was", func() bool { return bytes.Equal(codeOf(t, target.PID), before) })
			if got := target.Ask(t, "halt"); got != "0 wrong" {
				t.Errorf("results: %s", got)
			}
			b.stop(t)
			target.EndWell(t)
		})
	}
}
