// SPDX-License-Identifier: Apache-2.0

package mpiprogress_test

import (
	"path"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
	"github.com/attune-hpc/attune/tunlets/mpiprogress"
	"github.com/attune-hpc/attune/tunlets/sdk"
	"github.com/attune-hpc/attune/tunlets/tunlettest"
)

func TestSuite(t *testing.T) {
	var trouble []func() *tunlettest.Process
	for number := range int32(4) {
		trouble = append(trouble, func() *tunlettest.Process { return rank(number, 0.5) })
	}
	tunlettest.Suite(t, mpiprogress.New, trouble...)
}

func TestCrowdedRanksAreCured(t *testing.T) {
	h := start(t)
	ranks := startRanks(h, 4, 0.5)
	h.Run(500 * time.Millisecond)
	if len(h.Proposals) != 1 {
		t.Fatalf("proposals %v, want one", h.Proposals)
	}
	p := h.Proposals[0]
	if len(p.GetChanges()) != len(ranks) {
		t.Errorf("%d changes, want one per rank, %d", len(p.GetChanges()), len(ranks))
	}
	for _, c := range p.GetChanges() {
		v := c.GetAction().GetSetVariable()
		if v.GetSymbol() != "opal_progress_yield_when_idle" || v.GetObject() != "libopen-pal.so*" || v.GetSize() != 1 ||
			!v.GetValue().GetTruth() || v.GetRequiredOld().GetTruth() || v.GetRequiredOld().GetKind() == nil {
			t.Errorf("change %v, want the variable set from false to true", c)
		}
	}
	if p.GetPredictedGain() < 1.5 {
		t.Errorf("predicted gain %v", p.GetPredictedGain())
	}
	n := 0
	for _, o := range h.Objectives {
		if o.GetScope() != p.GetScope() {
			t.Errorf("objective scope %q, proposal %q", o.GetScope(), p.GetScope())
		}
		if v := o.GetValue(); v < 540 || v > 580 {
			t.Errorf("objective %v, want 4 x 140 calls/s", v)
		}
		n++
	}
	if n < 5 {
		t.Errorf("%d objective samples, want 5 at least", n)
	}
}

// Ranks with CPUs of their own, and what is no rank at all, cost nothing; when
// the CPU sets shrink, waiting tells.
func TestRanksWithRoomAreLeftAlone(t *testing.T) {
	h := start(t)
	h.StartProcess(tunlettest.Computing())
	ranks := startRanks(h, 2, 1)
	h.Run(2 * time.Second)
	if h.Delivered > 0 || len(h.Points()) > 0 {
		t.Errorf("woken %d times, points %v, without need", h.Delivered, h.Points())
	}
	began := h.Elapsed()
	for _, p := range ranks {
		p.Gauges[sdk.CPUsAllowed] = 1
		spin(p, 0.5)
	}
	h.Run(time.Second)
	if len(h.Proposals) != 1 {
		t.Fatalf("proposals %v, want one", h.Proposals)
	}
	if took := h.Proposals[0].At - began; took > 700*time.Millisecond {
		t.Errorf("proposed after %v", took)
	}
}

func TestTroubleInTheMiddleIsSeenInTime(t *testing.T) {
	h := start(t)
	ranks := startRanks(h, 4, 0.5)
	for _, p := range ranks { // asleep, as in input and output
		p.Rates[sdk.RunTime], p.Rates[sdk.RunqueueWait] = 1e7, 1e6
	}
	h.Run(3 * time.Second)
	if len(h.Proposals) > 0 {
		t.Fatalf("proposed before the trouble: %v", h.Proposals[0])
	}
	began := h.Elapsed()
	for _, p := range ranks {
		spin(p, 0.5)
	}
	h.Run(time.Second)
	if len(h.Proposals) != 1 {
		t.Fatalf("proposals %v, want one", h.Proposals)
	}
	if took := h.Proposals[0].At - began; took > 500*time.Millisecond {
		t.Errorf("proposed after %v, want half a second at most", took)
	}
}

func TestSilent(t *testing.T) {
	type process = tunlettest.Process
	with := func(n int, run float64, change func(*process)) (out []*process) {
		for i := range n {
			p := rank(int32(i), run)
			change(p)
			out = append(out, p)
		}
		return out
	}
	for _, tt := range []struct {
		name      string
		processes []*process
	}{
		{"as many ranks as CPUs", with(2, 1, func(*process) {})},
		{"as many ranks as CPUs, beside somebody else's program", with(2, 0.5, func(*process) {})},
		{"crowded, but no MPI", with(4, 0.5, func(p *process) { p.Objects = []string{"/usr/lib/libc.so.6"}; p.Rank = nil })},
		{"launcher's daemons", with(4, 0.5, func(p *process) { p.Objects = []string{"/usr/lib/libopen-pal.so.40"} })},
		{"bound to CPUs of their own", with(4, 0.999, func(p *process) { p.CPUs = 1; p.Gauges[sdk.CPUsAllowed] = 1 })},
		{"ranks sleep in their calls", with(4, 0.3, func(p *process) { p.Rates[sdk.RunqueueWait] = 0.2e9 })},
		{"ranks yield already", with(4, 0.5, func(p *process) { p.Rates[sdk.InvoluntarySwitches] = 40_000 })},
		{"hardly any MPI calls", with(4, 0.5, func(p *process) { p.Hits = calls("MPI_Allreduce", 1) })},
		{"jobs of one rank each", with(4, 0.5, func(p *process) { p.Rank = proto.Int32(0) })},
		{"polls only", with(4, 0.5, func(p *process) { p.Hits = calls("MPI_Iprobe", 1e5) })},
		{"clock and local calls only", with(4, 0.5, func(p *process) { p.Hits = calls("MPI_Wtime", 1e5) })},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h := start(t)
			for _, p := range tt.processes {
				h.StartProcess(p)
			}
			h.Run(5 * time.Second)
			if len(h.Proposals) > 0 || len(h.Remarks) > 0 {
				t.Errorf("proposals %v, remarks %v, want none", h.Proposals, h.Remarks)
			}
		})
	}
}

func TestMPICHRanksAreCured(t *testing.T) {
	for _, name := range []string{"libmpich.so.12", "libmpi.so.12"} {
		t.Run(name, func(t *testing.T) {
			h := start(t)
			for _, p := range startRanksOf(4, []string{"/usr/lib/" + name, "/usr/lib/libucp.so.0"}) {
				h.StartProcess(p)
			}
			h.Run(500 * time.Millisecond)
			for _, c := range only(t, h, 4).GetChanges() {
				i := c.GetAction().GetInsert()
				if i.GetFunction().GetSymbol() != "ucp_worker_progress" || i.GetCall().GetSymbol() != "sched_yield" || i.GetPlace() != attunev1.Place_PLACE_ENTRY {
					t.Errorf("change %v, want a call of sched_yield in ucp_worker_progress", c)
				}
			}
			for _, id := range h.Points() {
				object := h.Point(id).GetFunction().GetObject()
				if ok, _ := path.Match(object, name); !ok {
					t.Errorf("calls are counted in %q", object)
				}
			}
		})
	}
}

func TestMPICHWithoutUCXHasNoKnob(t *testing.T) {
	h := start(t)
	for _, p := range startRanksOf(4, []string{"/usr/lib/libmpich.so.12"}) {
		h.StartProcess(p)
	}
	h.Run(5 * time.Second)
	if len(h.Proposals) > 0 || len(h.Points()) > 0 {
		t.Errorf("proposals %v, points %v, want none", h.Proposals, h.Points())
	}
	if len(h.Remarks) != 1 || !strings.Contains(h.Remarks[0].GetText(), "no knob here") {
		t.Errorf("remarks %v, want one", h.Remarks)
	}
}

func TestLibraryIsLoadedLater(t *testing.T) {
	h := start(t)
	ranks := startRanksOf(4, nil) // python before it imports mpi4py
	for _, p := range ranks {
		h.StartProcess(p)
	}
	h.Run(time.Second)
	if len(h.Points()) > 0 {
		t.Fatalf("points before there is a library: %v", h.Points())
	}
	for _, p := range ranks {
		p.Objects = openMPI()
		h.UpdateProcess(p)
	}
	h.Run(time.Second)
	if len(h.Proposals) != 1 || len(h.Proposals[0].GetChanges()) != 4 {
		t.Errorf("proposals %v, want one with 4 changes", h.Proposals)
	}
}

func TestWaitsForMPIInit(t *testing.T) {
	h := start(t)
	ranks := startRanks(h, 4, 0.5)
	late := ranks[3].Hits
	ranks[3].Hits = nil
	h.Run(3 * time.Second)
	if len(h.Proposals) > 0 {
		t.Fatalf("proposed while a rank was in MPI_Init: %v", h.Proposals[0])
	}
	ranks[3].Hits = late
	h.Run(200 * time.Millisecond)
	if len(h.Proposals) != 1 || len(h.Proposals[0].GetChanges()) != 4 {
		t.Errorf("proposals %v, want one with 4 changes", h.Proposals)
	}
}

func TestLateRankIsTreatedLikeTheOthers(t *testing.T) {
	h := start(t)
	startRanks(h, 4, 0.5)
	h.Run(500 * time.Millisecond)
	first := h.Proposals[0]
	h.SetState(first.GetId(), applied, "")
	h.Run(300 * time.Millisecond)
	late := h.StartProcess(rank(4, 0.4))
	h.Run(time.Second)
	if len(h.Proposals) != 1 {
		t.Fatalf("proposed during a judgement: %v", h.Proposals)
	}
	h.SetState(first.GetId(), kept, "")
	h.Run(time.Second)
	if len(h.Proposals) != 2 {
		t.Fatalf("proposals %v, want two", h.Proposals)
	}
	if c := h.Proposals[1].GetChanges(); len(c) != 1 || c[0].GetProcess() != uint64(late.Handle) {
		t.Errorf("second proposal %v, want the late rank only", c)
	}
}

func TestDearPointsOnlyInTrouble(t *testing.T) {
	h := start(t)
	h.Mechanism, h.CostNanos = "uprobe_multi", 10_000
	ranks := startRanks(h, 4, 0.5)
	for _, p := range ranks {
		p.Rates[sdk.RunTime], p.Rates[sdk.RunqueueWait] = 1e7, 0
	}
	h.Run(time.Second)
	if len(h.Points()) > 0 {
		t.Fatalf("points that cost 10 us per hit are in place without trouble: %v", h.Points())
	}
	for _, p := range ranks {
		spin(p, 0.5)
	}
	h.Run(time.Second)
	if len(h.Proposals) != 1 {
		t.Fatalf("proposals %v, want one", h.Proposals)
	}
	h.SetState(h.Proposals[0].GetId(), kept, "")
	before, looks, rounds, placed := len(h.Objectives), 1, int(2*time.Minute/tunlettest.Period), 0
	for range rounds {
		was := len(h.Points()) > 0
		h.Round()
		if is := len(h.Points()) > 0; is {
			placed++
			if !was {
				looks++
			}
		}
	}
	if values := len(h.Objectives) - before; looks < 5 || values < 12*looks {
		t.Errorf("%d looks with %d values after the change was kept: nobody would see that it does harm by then", looks, values)
	}
	if placed > rounds/6 {
		t.Errorf("points that cost 10 us per hit are in place in %d of %d rounds after the change was kept", placed, rounds)
	}
}

func TestUncountableCallsAreRemarked(t *testing.T) {
	h := start(t)
	h.Refuse = func(*attunev1.MeasurePoint, *tunlettest.Process) string { return "not instrumented" }
	startRanks(h, 4, 0.5)
	h.Run(11 * time.Second)
	if len(h.Proposals) > 0 {
		t.Errorf("proposed %v", h.Proposals[0])
	}
	if len(h.Remarks) != 1 || !strings.Contains(h.Remarks[0].GetText(), "not instrumented") {
		t.Errorf("remarks %v, want one with the reason", h.Remarks)
	}
}

func TestNodesAreJudgedByThemselves(t *testing.T) {
	h := start(t)
	for i := range int32(6) {
		p := rank(i, 0.5)
		if p.Host = "crowded"; i >= 4 {
			p.Host = "roomy"
			spin(p, 1)
		}
		h.StartProcess(p)
	}
	h.Run(time.Second)
	if len(h.Proposals) != 1 || len(h.Proposals[0].GetChanges()) != 4 {
		t.Fatalf("proposals %v, want one for the crowded node", h.Proposals)
	}
	for _, o := range h.Objectives[1:] {
		if v := o.GetValue(); v < 540 || v > 580 || o.GetScope() != "node/crowded" {
			t.Errorf("objective %v, want 4 x 140 calls/s of the crowded node alone", v)
		}
	}
}
