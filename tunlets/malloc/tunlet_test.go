// SPDX-License-Identifier: Apache-2.0

package malloc_test

import (
	"strings"
	"testing"
	"time"

	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
	"github.com/attune-hpc/attune/tunlets/malloc"
	"github.com/attune-hpc/attune/tunlets/sdk"
	"github.com/attune-hpc/attune/tunlets/tunlettest"
)

const (
	kept   = attunev1.ProposalState_PROPOSAL_STATE_KEPT
	undone = attunev1.ProposalState_PROPOSAL_STATE_UNDONE
	mib    = 1 << 20
)

func TestSuite(t *testing.T) { tunlettest.Suite(t, malloc.New, storm) }

// storm is the measured case malloc: 807,000 minor faults/s and 90 % system
// time, here with blocks of 1 MiB taken in whole.
func storm() *tunlettest.Process {
	p := tunlettest.Computing()
	p.Rates[sdk.MinorFaults] = 807_000
	p.Rates[sdk.CPUSystem] = 0.9e9
	p.Rates[sdk.CPUUser] = 0.1e9
	p.Hits = allocations("malloc", 3_150, mib)
	return p
}

// allocations makes one of the hooks count blocks of one size.
func allocations(hook string, perSecond float64, bytes uint64) func(*attunev1.MeasurePoint) (float64, uint64) {
	return func(p *attunev1.MeasurePoint) (float64, uint64) {
		if p.GetHook() != hook || bytes < p.GetMinValue() {
			return 0, bytes
		}
		return perSecond, bytes
	}
}

func settings(t *testing.T, p tunlettest.Proposed) map[string]uint64 {
	t.Helper()
	out := map[string]uint64{}
	for _, c := range p.GetChanges() {
		s := c.GetAction().GetSetting()
		if c.GetKnob() != s.GetName() {
			t.Errorf("knob %q, setting %q", c.GetKnob(), s.GetName())
		}
		out[s.GetName()] = s.GetValue().GetUnsigned()
	}
	return out
}

func TestStormIsCured(t *testing.T) {
	h := tunlettest.Start(t, malloc.New, nil)
	p := h.StartProcess(tunlettest.Computing())
	h.Run(time.Second)
	if len(h.Points()) > 0 {
		t.Fatalf("points before the trouble: %v", h.Points())
	}
	began, trouble := h.Elapsed(), storm()
	p.Rates, p.Hits = trouble.Rates, trouble.Hits
	h.Run(600 * time.Millisecond)

	if len(h.Proposals) != 1 {
		t.Fatalf("proposals: %v, want one", h.Proposals)
	}
	got := h.Proposals[0]
	if took := got.At - began; took > 400*time.Millisecond {
		t.Errorf("proposed after %v, want 400 ms at most", took)
	}
	want := map[string]uint64{
		"glibc.malloc.mmap_threshold": 32 * mib, "glibc.malloc.trim_threshold": 1024 * mib, "glibc.malloc.top_pad": 64 * mib,
	}
	if s := settings(t, got); len(s) != len(want) || s["glibc.malloc.mmap_threshold"] != want["glibc.malloc.mmap_threshold"] ||
		s["glibc.malloc.trim_threshold"] != want["glibc.malloc.trim_threshold"] || s["glibc.malloc.top_pad"] != want["glibc.malloc.top_pad"] {
		t.Errorf("settings %v, want %v", s, want)
	}
	// 90 % system time: the model says ten times.
	if g := got.GetPredictedGain(); g < 8 || g > 12 {
		t.Errorf("predicted gain %v, want about 10", g)
	}
	baseline := 0
	for _, o := range h.Objectives {
		if o.GetScope() == got.GetScope() && o.GetUnixNano() <= h.Now().Add(got.At-h.Elapsed()).UnixNano() {
			baseline++
			if o.GetValue() < 3_100 || o.GetValue() > 3_200 {
				t.Errorf("objective %v, want the 3,150 allocations/s", o.GetValue())
			}
		}
	}
	if baseline < 5 {
		t.Errorf("%d objective samples before the proposal, want 5 at least", baseline)
	}
}

// A program without faults costs nothing; one that had some for a while is left
// alone again.
func TestQuietProcessesAreNotSampled(t *testing.T) {
	h := tunlettest.Start(t, malloc.New, nil)
	p := h.StartProcess(tunlettest.Computing())
	h.Run(2 * time.Second)
	if h.Delivered > 0 {
		t.Errorf("woken %d times by a program that only computes", h.Delivered)
	}
	p.Rates[sdk.MinorFaults] = 600
	h.Run(time.Second)
	if h.Delivered == 0 {
		t.Error("faults went unnoticed")
	}
	p.Rates[sdk.MinorFaults] = 10
	h.Run(3 * time.Second)
	before := h.Delivered
	h.Run(2 * time.Second)
	if h.Delivered > before {
		t.Errorf("woken %d times long after the faults", h.Delivered-before)
	}
}

func TestHooksStayUntilJudged(t *testing.T) {
	for _, tt := range []struct {
		name  string
		state attunev1.ProposalState
	}{
		{"kept", kept},
		{"undone", undone},
		{"failed", attunev1.ProposalState_PROPOSAL_STATE_FAILED},
		{"advised", attunev1.ProposalState_PROPOSAL_STATE_ADVISED},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h := tunlettest.Start(t, malloc.New, nil, storm())
			h.Run(600 * time.Millisecond)
			if len(h.Proposals) != 1 {
				t.Fatalf("proposals: %v, want one", h.Proposals)
			}
			h.SetState(h.Proposals[0].GetId(), attunev1.ProposalState_PROPOSAL_STATE_APPLIED, "")
			before := len(h.Objectives)
			h.Run(time.Second)
			if n := len(h.Objectives) - before; n != 20 {
				t.Errorf("%d objective samples under judgement, want one per round, 20", n)
			}
			h.SetState(h.Proposals[0].GetId(), tt.state, "")
			if tt.state == kept { // it is looked at for as long as the Analyzer needs
				h.Run(3 * time.Second)
			}
			if len(h.Points()) > 0 {
				t.Errorf("points after the verdict: %v", h.Points())
			}
		})
	}
}

// TestSettingsThatMadeRoom: settings that were kept, and had to make room, are measured when they
// are tried again, until they are judged.
func TestSettingsThatMadeRoom(t *testing.T) {
	h := tunlettest.Start(t, malloc.New, nil, storm())
	h.Run(5 * time.Second)
	id := h.Proposals[0].GetId()
	h.SetState(id, kept, "")
	h.Run(10 * time.Second)
	for _, tt := range []struct {
		state       attunev1.ProposalState
		least, most int // values in 15 s
	}{
		{attunev1.ProposalState_PROPOSAL_STATE_UNDONE, 0, 0},
		{attunev1.ProposalState_PROPOSAL_STATE_APPLYING, 280, 300},
		{attunev1.ProposalState_PROPOSAL_STATE_UNDONE, 0, 0},
	} {
		h.SetState(id, tt.state, "")
		h.Objectives = nil
		if h.Run(15 * time.Second); len(h.Objectives) < tt.least || len(h.Objectives) > tt.most {
			t.Errorf("%v: %d values of the objective, want %d to %d", tt.state, len(h.Objectives), tt.least, tt.most)
		}
	}
}

// What the overhead budget switches off for a while is not given up, and blocks
// that are not counted are not none.
func TestHooksThatAreOffAreWaitedFor(t *testing.T) {
	h := tunlettest.Start(t, malloc.New, nil)
	p := h.StartProcess(storm())
	h.Run(600 * time.Millisecond)
	if len(h.Proposals) != 1 {
		t.Fatalf("proposals: %v, want one", h.Proposals)
	}
	h.SetState(h.Proposals[0].GetId(), attunev1.ProposalState_PROPOSAL_STATE_APPLIED, "")
	points, before := h.Points(), len(h.Objectives)
	h.SwitchOff(points[0], p)
	h.Run(time.Second)
	if n := len(h.Objectives) - before; n > 0 {
		t.Errorf("%d objective samples while %s was off, want none", n, points[0])
	}
	if len(h.Points()) != len(points) || len(h.Remarks) > 0 {
		t.Errorf("points %v, remarks %v: given up", h.Points(), h.Remarks)
	}
	h.SwitchOn(points[0], p)
	h.Run(time.Second)
	if n := len(h.Objectives) - before; n < 18 {
		t.Errorf("%d objective samples in a second after it was back, want nearly 20", n)
	}
}

// Bringing DMLib into a process may take many seconds, in which nothing is said of the
// hooks. They are awaited as long as there is the symptom.
func TestLateHooks(t *testing.T) {
	for _, tt := range []struct {
		name string
		ends bool // the storm, before the answer
	}{{"in a storm", false}, {"after it", true}} {
		t.Run(tt.name, func(t *testing.T) {
			h := tunlettest.Start(t, malloc.New, nil)
			waiting := true
			h.Unanswered = func(*attunev1.MeasurePoint, *tunlettest.Process) bool { return waiting }
			p := h.StartProcess(storm())
			h.Run(20 * time.Second)
			if len(h.Points()) == 0 {
				t.Fatal("the hooks are given up while memory is still given back and taken again")
			}
			if tt.ends {
				p.Rates[sdk.MinorFaults] = 0
			} else {
				waiting = false
			}
			h.Run(600 * time.Millisecond)
			if proposed, asked := len(h.Proposals), len(h.Points()); proposed == 0 != tt.ends || asked == 0 != tt.ends {
				t.Errorf("%d proposals, %d points", proposed, asked)
			}
		})
	}
}

func TestUndoneIsTriedOnceMore(t *testing.T) {
	h := tunlettest.Start(t, malloc.New, nil, storm())
	for range 3 {
		h.Run(13 * time.Second)
		for _, p := range h.Proposals {
			h.SetState(p.GetId(), undone, "no gain")
		}
	}
	if len(h.Proposals) != 2 {
		t.Fatalf("%d proposals, want two", len(h.Proposals))
	}
	if pause := h.Proposals[1].At - h.Proposals[0].At; pause < 10*time.Second {
		t.Errorf("tried again after %v, want 10 s at least", pause)
	}
}

func TestBagOfTasks(t *testing.T) {
	h := tunlettest.Start(t, malloc.New, nil)
	for range 3 {
		h.StartProcess(storm())
	}
	h.StartProcess(tunlettest.Computing())
	h.Run(600 * time.Millisecond)
	if len(h.Proposals) != 3 {
		t.Fatalf("%d proposals, want one for each process with the trouble", len(h.Proposals))
	}
	scopes := map[string]bool{}
	for _, p := range h.Proposals {
		scopes[p.GetScope()] = true
	}
	if len(scopes) != 3 {
		t.Errorf("scopes %v, want one per process", scopes)
	}
}

func TestConfigure(t *testing.T) {
	for _, tt := range []struct {
		name, option, value, want string
	}{
		{"bytes", malloc.OptionMemory, "1000000", ""},
		{"with a unit", malloc.OptionMemory, "2GiB", ""},
		{"no number", malloc.OptionMemory, "lots", "not a number of bytes"},
		{"unknown", "memroy", "1", "unknown"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h := tunlettest.New(t, malloc.New)
			ctx, cancel := h.Context()
			defer cancel()
			r, err := h.Client.Configure(ctx, &attunev1.ConfigureRequest{Options: map[string]string{tt.option: tt.value}})
			if err != nil {
				t.Fatal(err)
			}
			if got := r.GetError(); (got == "") != (tt.want == "") || !strings.Contains(got, tt.want) {
				t.Errorf("error %q, want %q", got, tt.want)
			}
		})
	}
}

func TestEvaluateWaitsWithoutProgress(t *testing.T) {
	h := tunlettest.Start(t, malloc.New, nil)
	for _, tt := range []struct {
		name      string
		after     float64
		suggested attunev1.Verdict
		want      attunev1.Verdict
	}{
		{"better", 1000, attunev1.Verdict_VERDICT_KEEP, attunev1.Verdict_VERDICT_KEEP},
		{"worse", 10, attunev1.Verdict_VERDICT_UNDO, attunev1.Verdict_VERDICT_UNDO},
		{"nothing", 0, attunev1.Verdict_VERDICT_UNDO, attunev1.Verdict_VERDICT_WAIT},
	} {
		t.Run(tt.name, func(t *testing.T) {
			v, ok := h.Verdict(&attunev1.EvaluateRequest{
				ProposalId: "p", Before: &attunev1.Estimate{Median: 100}, After: &attunev1.Estimate{Median: tt.after},
				Suggested: tt.suggested,
			})
			if !ok || v.GetVerdict() != tt.want {
				t.Errorf("verdict %v, want %v", v.GetVerdict(), tt.want)
			}
		})
	}
}
