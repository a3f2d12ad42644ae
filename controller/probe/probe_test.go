// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/attune-hpc/attune/controller/bpf/uprobe"
	"github.com/attune-hpc/attune/controller/shm"
	"github.com/attune-hpc/attune/controller/sites"
	"github.com/attune-hpc/attune/internal/objfile"
	"github.com/attune-hpc/attune/internal/proc"
	"github.com/attune-hpc/attune/internal/procid"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// process has real memory, which no application has mapped.
type process struct {
	handle   uint64
	memory   *shm.Memory
	started  time.Time
	images   []objfile.Image
	unmapped error // why there are no images
}

func (p *process) Handle() uint64                                { return p.handle }
func (p *process) PID() int                                      { return 1 << 22 } // none
func (p *process) Identity() procid.Identity                     { return procid.Identity{PID: p.PID()} }
func (p *process) Hold() (*proc.Handle, error)                   { return proc.Open(p.PID()) }
func (p *process) Memory() *shm.Memory                           { return p.memory }
func (p *process) WithoutDMLib() string                          { return "it is sealed" }
func (p *process) Started() time.Time                            { return p.started }
func (p *process) Alive() bool                                   { return true }
func (p *process) Images() ([]objfile.Image, error)              { return p.images, p.unmapped }
func (p *process) Map(context.Context, uint64, uint64) error     { return errors.ErrUnsupported }
func (p *process) Rewrite(context.Context, ...proc.Change) error { return errors.ErrUnsupported }
func (p *process) Sites() *sites.Sites                           { return sites.NewSites(p, new(sites.Functions)) }

// listener keeps the latest status of each point.
type listener struct {
	mu     sync.Mutex
	status map[uint32]*attunev1.PointStatus
}

func (l *listener) hear(s *attunev1.PointStatus) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.status[s.GetPoint()] = s
}

func (l *listener) of(index uint32) *attunev1.PointStatus {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.status[index]
}

func mustProcess(t *testing.T, handle uint64) *process {
	t.Helper()
	memory, err := shm.New(shm.Geometry{Slots: 4, Rings: 1, RingRecords: 64})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := memory.Close(); err != nil {
			t.Error(err)
		}
	})
	return &process{handle: handle, memory: memory, unmapped: errors.New("no images")}
}

func start(t *testing.T) (*Placer, *listener) {
	t.Helper()
	l := &listener{status: make(map[uint32]*attunev1.PointStatus)}
	p := New(Options{Status: l.hear, Uprobes: func() (*uprobe.Uprobes, error) { return nil, errors.New("no uprobes here") }})
	t.Cleanup(p.Close)
	return p, l
}

func hook(name string) *attunev1.MeasurePoint {
	return &attunev1.MeasurePoint{Id: name, Target: &attunev1.MeasurePoint_Hook{Hook: name}}
}

func (l *listener) expect(t *testing.T, index uint32, state attunev1.PointState, reason string) {
	t.Helper()
	s := l.of(index)
	if s.GetState() != state || !strings.Contains(s.GetReason(), reason) {
		t.Errorf("point %d: %v, want %v with %q", index, s, state, reason)
	}
}

func enabled(p *process) (points []uint16) {
	for _, a := range p.memory.Aggregates(nil, shm.Scale{}) {
		points = append(points, a.Point)
	}
	return points
}

func TestPointsMeetProcesses(t *testing.T) {
	placer, heard := start(t)
	placer.Add(1, hook("malloc"))
	early := mustProcess(t, 10)
	placer.Admit(context.Background(), early, true)
	heard.expect(t, 1, attunev1.PointState_POINT_STATE_PLACED, "")
	if got := enabled(early); len(got) != 1 || got[0] != 1 {
		t.Errorf("enabled in the early process: %v", got)
	}

	only := hook("read")
	only.Processes = []uint64{11}
	placer.Add(2, only)
	late := mustProcess(t, 11)
	placer.Admit(context.Background(), late, true)
	heard.expect(t, 2, attunev1.PointState_POINT_STATE_PLACED, "")
	if got := len(enabled(early)); got != 1 {
		t.Errorf("%d points in a process that one of them is not meant for", got)
	}
	if got := len(enabled(late)); got != 2 {
		t.Errorf("%d points in the late process, want both", got)
	}

	placer.Remove(1)
	placer.Close() // waits
	heard.expect(t, 1, attunev1.PointState_POINT_STATE_REMOVED, "")
	if got := enabled(late); len(got) != 1 || got[0] != 2 {
		t.Errorf("enabled after the removal: %v", got)
	}
	if placer.Remove(1) != nil {
		t.Error("removed twice")
	}
}

// Each point has the hook with its own settings, and goes on when the other ends.
func TestHookIsShared(t *testing.T) {
	placer, heard := start(t)
	p := mustProcess(t, 10)
	placer.Admit(context.Background(), p, true)
	large := hook("malloc")
	large.MinValue = 1 << 20
	placer.points.add(1, hook("malloc"))
	placer.points.add(2, large)
	placer.Refresh(10)
	placer.work.group.Wait()
	reasons := 0
	for _, index := range []uint32{1, 2} {
		heard.expect(t, index, attunev1.PointState_POINT_STATE_PLACED, "")
		if heard.of(index).GetReason() == whyShared {
			reasons++
		}
	}
	if got := enabled(p); len(got) != 2 || reasons != 1 {
		t.Errorf("enabled: %v, of which %d share; want both, of which one does", got, reasons)
	}
	placer.Remove(1)
	placer.Close()
	if got := enabled(p); len(got) != 1 || got[0] != 2 {
		t.Errorf("enabled after the removal: %v", got)
	}
}

func TestRefusals(t *testing.T) {
	function := func(dynamic bool) *attunev1.MeasurePoint {
		return &attunev1.MeasurePoint{Id: "f", Target: &attunev1.MeasurePoint_Function{Function: &attunev1.FunctionTarget{
			Symbols: []string{"f"}, DynamicCallsOnly: dynamic,
		}}}
	}
	tests := []struct {
		name   string
		spec   *attunev1.MeasurePoint
		reason string
	}{
		{"unknown hook", hook("nothing"), `no hook "nothing"`},
		{"no target", &attunev1.MeasurePoint{Id: "x"}, "no target"},
		{"inside an object", function(false), "no uprobes here"},
		{"DMLib without stubs", function(true), "no stubs"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			placer, heard := start(t)
			placer.Add(1, test.spec)
			placer.Admit(context.Background(), mustProcess(t, 10), false)
			heard.expect(t, 1, attunev1.PointState_POINT_STATE_REFUSED, test.reason)
		})
	}
	t.Run("no DMLib", func(t *testing.T) {
		placer, heard := start(t)
		placer.Add(1, hook("malloc"))
		placer.Admit(context.Background(), &process{handle: 1}, false)
		heard.expect(t, 1, attunev1.PointState_POINT_STATE_REFUSED, errNoDMLib.Error()+": it is sealed")
	})
}

func TestControl(t *testing.T) {
	spec := hook("malloc")
	spec.Delivery, spec.SampleEvery, spec.MinValue = attunev1.Delivery_DELIVERY_SAMPLED, 5, 100
	got := control(3, spec)
	if got.Point != 3 || !got.Event || got.Aggregate || got.SampleEvery != 8 || got.Only.Min != 100 || got.Only.Max != 1<<64-1 {
		t.Errorf("control %+v", got)
	}
	if got := control(3, hook("malloc")); !got.Aggregate || got.Event || got.Only != nil {
		t.Errorf("default control %+v", got)
	}
}
