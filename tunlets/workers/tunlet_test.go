// SPDX-License-Identifier: Apache-2.0

package workers_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
	"github.com/attune-hpc/attune/tunlets/sdk"
	"github.com/attune-hpc/attune/tunlets/tunlettest"
	"github.com/attune-hpc/attune/tunlets/workers"
)

func told() map[string]string {
	return map[string]string{
		"variable": "workers", "round": "play_round", "dispatch": "hand_out", "task": "work_on", "most": "32",
	}
}

func TestSuite(t *testing.T) { tunlettest.Suite(t, workers.New) }

func TestSuiteConfigured(t *testing.T) {
	tunlettest.SuiteWith(t, told(), workers.New, func() *tunlettest.Process { return team(1) })
}

// team is a program on four CPUs with 8 ms of work in each round, and a message of
// 0.1 ms to each worker.
func team(n float64) *tunlettest.Process {
	const work, message, cpus = 8e-3, 1e-4, 4
	p := tunlettest.Computing()
	p.Rates[sdk.VoluntarySwitches] = 1000
	p.Gauges[sdk.CPUsAllowed] = cpus
	period := message*n + work/min(n, cpus)
	p.Hits = func(point *attunev1.MeasurePoint) (float64, uint64) {
		switch point.GetFunction().GetSymbols()[0] {
		case "play_round":
			return 1 / period, uint64(n)
		case "hand_out":
			return n / period, uint64(message * 1e9)
		case "work_on":
			return n / period, uint64(work / min(n, cpus) * 1e9) // all at one time
		}
		return 0, 0
	}
	p.Rates[sdk.RunqueueWait] = p.Rates[sdk.RunTime] * (max(1, n/cpus) - 1)
	return p
}

func TestProposes(t *testing.T) {
	for _, tt := range []struct {
		name      string
		n         float64
		want      int64 // 0: silent
		low, high float64
	}{
		{"a single worker", 1, 4, 3.2, 3.5},
		{"too many messages", 32, 4, 2.0, 2.3},
		{"as it should be", 4, 0, 0, 0},
		{"one too many", 5, 0, 0, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h := tunlettest.Start(t, workers.New, told(), team(tt.n))
			h.Run(5 * time.Second)
			if tt.want == 0 {
				if len(h.Proposals) > 0 {
					t.Errorf("proposed %v", h.Proposals[0])
				}
				return
			}
			if len(h.Proposals) != 1 {
				t.Fatalf("proposals %v, want one", h.Proposals)
			}
			p := h.Proposals[0]
			if got := p.GetChanges()[0].GetAction().GetSetVariable(); got.GetValue().GetInteger() != tt.want || got.GetSymbol() != "workers" {
				t.Errorf("change %v, want %d workers", got, tt.want)
			}
			if g := p.GetPredictedGain(); g < tt.low || g > tt.high {
				t.Errorf("predicted gain %v, want %v to %v", g, tt.low, tt.high)
			}
		})
	}
}

// One of many workers whose calls are not counted keeps nothing from being judged;
// the model does without a tenth of them at most.
func TestUncountedWorker(t *testing.T) {
	for _, tt := range []struct {
		workers, proposals int
	}{{15, 1}, {3, 0}} {
		h := tunlettest.Start(t, workers.New, told(), team(32))
		var worker *tunlettest.Process
		for range tt.workers {
			worker = team(32)
			worker.Hits = func(*attunev1.MeasurePoint) (float64, uint64) { return 0, 0 }
			h.StartProcess(worker)
		}
		h.Run(200 * time.Millisecond)
		h.SwitchOff(fmt.Sprintf("task@%d", worker.Handle), worker)
		h.Run(5 * time.Second)
		if len(h.Objectives) < 20 || len(h.Proposals) != tt.proposals {
			t.Errorf("%d workers: %d values of the objective, %d proposals; want 20 at least, and %d",
				tt.workers, len(h.Objectives), len(h.Proposals), tt.proposals)
		}
	}
}

// The workers are processes of their own, and the variable that counts is the
// master's.
func TestProcessesOfTheirOwn(t *testing.T) {
	h := tunlettest.Start(t, workers.New, told())
	whole := team(1).Hits
	part := func(symbols ...string) *tunlettest.Process {
		p := team(1)
		p.Hits = func(point *attunev1.MeasurePoint) (float64, uint64) {
			for _, s := range symbols {
				if point.GetFunction().GetSymbols()[0] == s {
					return whole(point)
				}
			}
			return 0, 0
		}
		return h.StartProcess(p)
	}
	part("work_on")
	master := part("play_round", "hand_out")
	h.Run(5 * time.Second)
	if len(h.Proposals) != 1 || len(h.Proposals[0].GetChanges()) != 1 || h.Proposals[0].GetChanges()[0].GetProcess() != uint64(master.Handle) {
		t.Errorf("proposals %v, want one, in the master", h.Proposals)
	}
}

// Ranks that are bound to a core each have all their cores together.
func TestBoundRanks(t *testing.T) {
	h := tunlettest.Start(t, workers.New, told())
	for i := range 4 {
		p := team(1)
		p.UsableCPUs, p.Gauges[sdk.CPUsAllowed] = "0-7", 1
		if i > 0 {
			p.Hits = func(*attunev1.MeasurePoint) (float64, uint64) { return 0, 0 }
		}
		h.StartProcess(p)
	}
	h.Run(5 * time.Second)
	if len(h.Proposals) != 1 {
		t.Fatalf("proposals %v, want one", h.Proposals)
	}
	if got := h.Proposals[0].GetChanges()[0].GetAction().GetSetVariable().GetValue().GetInteger(); got != 4 {
		t.Errorf("%d workers, want 4", got)
	}
}

func TestGivesUp(t *testing.T) {
	h := tunlettest.Start(t, workers.New, told(), team(1))
	for range 6 {
		h.Run(15 * time.Second)
		for _, p := range h.Proposals {
			h.SetState(p.GetId(), attunev1.ProposalState_PROPOSAL_STATE_UNDONE, "no gain")
		}
	}
	if len(h.Proposals) != 3 {
		t.Errorf("%d proposals, want three", len(h.Proposals))
	}
	before := h.Delivered
	h.StartProcess(team(1))
	h.Run(5 * time.Second)
	if len(h.Points()) > 0 || h.Delivered > before {
		t.Errorf("points %v, woken %d times after it gave up", h.Points(), h.Delivered-before)
	}
}

// A change that was kept makes room for the next one, and its rounds are counted until it is
// taken back.
func TestKeptIsReplaced(t *testing.T) {
	const undone = attunev1.ProposalState_PROPOSAL_STATE_UNDONE
	h := tunlettest.Start(t, workers.New, told())
	p := h.StartProcess(team(1))
	h.Run(5 * time.Second)
	first := h.Proposals[0]
	h.SetState(first.GetId(), attunev1.ProposalState_PROPOSAL_STATE_KEPT, "")
	p.Hits = team(32).Hits
	h.Run(15 * time.Second)
	if len(h.Proposals) != 2 || h.Proposals[1].GetReplaces() != first.GetId() {
		t.Fatalf("proposals %v, want a second one that replaces the first", h.Proposals)
	}
	h.SetState(first.GetId(), undone, "replaced")
	for range 3 {
		h.SetState(h.Proposals[len(h.Proposals)-1].GetId(), undone, "no gain")
		h.SetState(first.GetId(), attunev1.ProposalState_PROPOSAL_STATE_KEPT, "as before")
		h.Run(15 * time.Second)
	}
	if last := h.Proposals[len(h.Proposals)-1]; len(h.Proposals) != 4 || last.GetReplaces() != first.GetId() {
		t.Errorf("proposals %v, want three after the first, the last of which replaces it too", h.Proposals)
	}
	if want := []string{fmt.Sprintf("round@%d", p.Handle)}; !slices.Equal(h.Points(), want) {
		t.Errorf("points %v after it gave up, want %v", h.Points(), want)
	}
	h.SetState(first.GetId(), undone, "harm")
	if len(h.Points()) > 0 {
		t.Errorf("points %v with nothing kept", h.Points())
	}
}

// One that was kept before the tunlet's restart makes room as well.
func TestKeptBeforeRestartIsReplaced(t *testing.T) {
	h := tunlettest.Start(t, workers.New, told())
	p := h.StartProcess(team(1))
	h.Run(5 * time.Second)
	first := h.Proposals[0]
	tunlettest.Restart(h, first.Proposal)
	p.Hits = team(32).Hits
	h.Run(5 * time.Second)
	if len(h.Proposals) != 2 || h.Proposals[1].GetReplaces() != first.GetId() {
		t.Errorf("proposals %v, want a second one that replaces the first", h.Proposals)
	}
}

// A program that ends while a change of it is judged is no failure: a script may start
// many short ones.
func TestShortRuns(t *testing.T) {
	h := tunlettest.Start(t, workers.New, told())
	const runs = 5
	for range runs {
		p := h.StartProcess(team(1))
		h.Run(3 * time.Second)
		h.SetState(h.Proposals[len(h.Proposals)-1].GetId(), attunev1.ProposalState_PROPOSAL_STATE_UNDONE, "ended")
		h.EndProcess(p)
	}
	if len(h.Proposals) != runs {
		t.Errorf("%d proposals, want one in each of %d runs", len(h.Proposals), runs)
	}
}

// The end of a program that was given up lets a worker that stays be part of the next.
func TestNextMaster(t *testing.T) {
	h := tunlettest.Start(t, workers.New, told())
	worker := team(1)
	worker.Hits = func(*attunev1.MeasurePoint) (float64, uint64) { return 0, 0 }
	h.StartProcess(worker)
	master := h.StartProcess(team(1))
	for range 3 {
		h.Run(15 * time.Second)
		h.SetState(h.Proposals[len(h.Proposals)-1].GetId(), attunev1.ProposalState_PROPOSAL_STATE_UNDONE, "no gain")
	}
	h.EndProcess(master)
	h.StartProcess(team(1))
	h.Run(5 * time.Second)
	if len(h.Proposals) != 4 || len(h.Points()) != 6 {
		t.Errorf("%d proposals, points %v; want a fourth, and points in both processes", len(h.Proposals), h.Points())
	}
}

func TestNoSuchFunction(t *testing.T) {
	for _, tt := range []struct {
		name      string
		processes int
		missing   []string // functions
		said      string
	}{
		{"none of them", 1, []string{"play_round", "hand_out", "work_on"}, "play_round"},
		{"the task", 1, []string{"work_on"}, "work_on"},
		{"the dispatch", 1, []string{"hand_out"}, "hand_out"},
		{"the round, in many processes", 64, []string{"play_round"}, "play_round"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h := tunlettest.New(t, workers.New)
			h.Options = told()
			h.Options["object"] = "program"
			h.Refuse = func(p *attunev1.MeasurePoint, _ *tunlettest.Process) string {
				if slices.Contains(tt.missing, p.GetFunction().GetSymbols()[0]) {
					return "no function of that name"
				}
				return ""
			}
			h.StartSession()
			for range tt.processes {
				h.StartProcess(team(1))
			}
			h.Run(2 * time.Second)
			want := "workers: calls of " + tt.said + " cannot be counted: no function of that name"
			if len(h.Points()) > 0 || len(h.Proposals) > 0 || len(h.Remarks) != 1 || h.Remarks[0].GetText() != want {
				t.Errorf("points %v, proposals %v, remarks %v; want one remark, %q", h.Points(), h.Proposals, h.Remarks, want)
			}
		})
	}
}

func TestConfigure(t *testing.T) {
	for name, options := range map[string]map[string]string{
		"range":  {"least": "9", "most": "3"},
		"size":   {"size": "2"},
		"choice": {"goal": "money"},
	} {
		h := tunlettest.New(t, workers.New)
		all := told()
		maps.Copy(all, options)
		ctx, cancel := h.Context()
		r, err := h.Client.Configure(ctx, &attunev1.ConfigureRequest{Options: all})
		cancel()
		if err != nil || r.GetError() == "" {
			t.Errorf("%s: %v taken (%v)", name, options, err)
		}
	}
}
