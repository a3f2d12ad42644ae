// SPDX-License-Identifier: Apache-2.0

package perprocess_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
	"github.com/attune-hpc/attune/tunlets/sdk"
	"github.com/attune-hpc/attune/tunlets/sdk/perprocess"
	"github.com/attune-hpc/attune/tunlets/tunlettest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const leastWrites = 1000

// writes is a problem of processes that write often, but for those called spared.
type writes struct{}

func (writes) Describe() sdk.Description {
	return sdk.Description{
		Name: "writes", Version: "1", Summary: "has a program write less often", MaxTries: 2,
		Objective: sdk.Objective{Name: "bytes", Unit: "B/s", Description: "bytes written per second"},
		Knobs:     []sdk.Knob{{Name: "n", Action: sdk.SetVariable("*", "n", 4, sdk.Value{}), Description: "a variable"}},
		Wake:      []sdk.Wake{{Levels: []sdk.Level{{Signal: sdk.WriteCalls, AtLeast: leastWrites}}, Lasting: 100 * time.Millisecond}},
	}
}

func (writes) Concerns(p sdk.Process) bool { return !strings.HasSuffix(p.Executable, "/spared") }

func (writes) Progress(latest sdk.Span) (float64, bool) { return latest.Rate(sdk.WrittenBytes) }

func (writes) Symptom(recent sdk.Span) bool {
	calls, known := recent.Rate(sdk.WriteCalls)
	return known && calls >= leastWrites
}

func (writes) Propose(sdk.Process, sdk.Span) (sdk.Proposal, bool) {
	return sdk.Proposal{
		PredictedGain: 2, Confidence: 0.5, Reason: "it writes often",
		Changes: []sdk.Change{{Knob: "n", Action: sdk.SetVariable("*", "n", 4, sdk.Int(64))}},
	}, true
}

func newTunlet() sdk.Tunlet { return perprocess.New(writes{}, 300*time.Millisecond) }

// configured and choosy have a method with the name of an optional one's and another signature.
type configured struct{ writes }

func (configured) Configure(map[string]any) error { return nil }

type choosy struct{ writes }

func (choosy) Concerns(*sdk.Process) bool { return true }

// A method of a problem that would never be called is an error of the first call.
func TestOtherSignatureIsAnError(t *testing.T) {
	for want, problem := range map[string]perprocess.Problem{
		"method Configure of perprocess_test.configured is a func(map[string]interface {}) error, and would never be called": configured{},
		"method Concerns of perprocess_test.choosy is a func(*sdk.Process) bool, and would never be called":                  choosy{},
	} {
		server := sdk.NewServer(func() sdk.Tunlet { return perprocess.New(problem, 0) }, sdk.ServerOptions{})
		if _, err := server.Describe(t.Context(), &attunev1.DescribeRequest{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

func writer(calls float64) *tunlettest.Process {
	p := tunlettest.Computing()
	p.Rates[sdk.WriteCalls], p.Rates[sdk.WrittenBytes] = calls, 100*calls
	return p
}

func started(t *testing.T, processes ...*tunlettest.Process) *tunlettest.Harness {
	t.Helper()
	h := tunlettest.Start(t, newTunlet, nil)
	for _, p := range processes {
		h.StartProcess(p)
	}
	return h
}

func TestSuite(t *testing.T) {
	tunlettest.Suite(t, newTunlet, func() *tunlettest.Process { return writer(5000) })
}

// TestProposesInEach: each process with the symptom has a proposal of its own, with a baseline
// before it, and others have none.
func TestProposesInEach(t *testing.T) {
	spared := writer(5000)
	spared.Executable = "/usr/bin/spared"
	h := started(t, writer(5000), writer(10), spared, writer(7000))
	h.Run(2 * time.Second)
	var got []string
	for _, p := range h.Proposals {
		got = append(got, p.GetId()+" in "+p.GetScope())
		if p.GetChanges()[0].GetProcess() == 0 {
			t.Errorf("%v changes no process", p)
		}
	}
	if diff := cmp.Diff([]string{"writes-1-1 in process/1", "writes-4-1 in process/4"}, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if len(h.Objectives) < 10 {
		t.Errorf("%d values of the objective", len(h.Objectives))
	}
}

// TestEnds: what was kept ends it, and what came to nothing is tried as often as the description
// says.
func TestEnds(t *testing.T) {
	for state, proposals := range map[attunev1.ProposalState]int{
		attunev1.ProposalState_PROPOSAL_STATE_KEPT:    1,
		attunev1.ProposalState_PROPOSAL_STATE_ADVISED: 1,
		attunev1.ProposalState_PROPOSAL_STATE_UNDONE:  2,
		attunev1.ProposalState_PROPOSAL_STATE_FAILED:  2,
	} {
		t.Run(state.String(), func(t *testing.T) {
			h := started(t, writer(5000))
			for range 5 {
				h.Run(sdk.RetryPause + time.Second)
				for _, p := range h.Proposals {
					h.SetState(p.GetId(), state, "")
				}
			}
			if len(h.Proposals) != proposals {
				t.Errorf("%d proposals, want %d", len(h.Proposals), proposals)
			}
		})
	}
}

// TestSleeps: where the symptom has gone, nothing is reported any more until it is back.
func TestSleeps(t *testing.T) {
	p := writer(leastWrites / 2)
	h := started(t, p)
	h.Run(time.Second)
	if len(h.Objectives) != 0 {
		t.Errorf("%d values of the objective before the symptom", len(h.Objectives))
	}
	p.Rates[sdk.WriteCalls] = 2 * leastWrites
	h.Run(100 * time.Millisecond) // a third of the time for which it has to last
	p.Rates[sdk.WriteCalls] = 0
	h.Run(time.Second)
	reported := len(h.Objectives)
	h.Run(5 * time.Second)
	if len(h.Objectives) != reported || reported == 0 || len(h.Proposals) != 0 {
		t.Errorf("%d and then %d values of the objective, proposals %v", reported, len(h.Objectives), h.Proposals)
	}
	p.Rates[sdk.WriteCalls] = 2 * leastWrites
	h.Run(2 * time.Second)
	if len(h.Proposals) != 1 {
		t.Errorf("proposals %v, want one when it is back", h.Proposals)
	}
}

// TestWatches: they are in the order of their handles, bounded, and who is beyond delivers nothing
// and is told of once.
func TestWatches(t *testing.T) {
	var watches perprocess.Watches[sdk.Handle]
	follow := func(h *sdk.Host, p sdk.Handle) bool {
		_, begun := watches.Follow(h, p, func() sdk.Handle { return p })
		return begun
	}
	for _, p := range []sdk.Handle{3, 1, 2} {
		if !follow(nil, p) || follow(nil, p) {
			t.Errorf("process %d", p)
		}
	}
	watches.Forget(2)
	watches.Forget(2)
	var got []sdk.Handle
	for p := range watches.All() {
		got = append(got, p)
	}
	if diff := cmp.Diff([]sdk.Handle{1, 3}, got); diff != "" || watches.Of(3) != 3 || watches.Of(2) != 0 {
		t.Errorf("(-want +got)\n%s", diff)
	}
	h := tunlettest.Start(t, newTunlet, nil)
	for range 1030 {
		h.StartProcess(writer(10))
	}
	h.Run(time.Second)
	if len(h.Remarks) != 1 || !strings.Contains(h.Remarks[0].GetText(), "more than 1024 processes") || h.Delivered != 0 {
		t.Errorf("remarks %v, and %d calls with samples", h.Remarks, h.Delivered)
	}
}

// TestLooks: what was kept is looked at again and again, for as long as it stays and the process
// lives, while hardly anything is delivered; and as long as it is compared again.
func TestLooks(t *testing.T) {
	p := writer(5000)
	h := started(t, p)
	h.Run(2 * time.Second)
	kept := h.Proposals[0].GetId()
	reported := func(d time.Duration) int {
		before := len(h.Objectives)
		h.Run(d)
		return len(h.Objectives) - before
	}
	h.SetState(kept, attunev1.ProposalState_PROPOSAL_STATE_KEPT, "")
	for range 3 {
		if n := reported(80 * time.Second); n < 40 || n > 400 {
			t.Errorf("%d values of the objective in 80 s: want a look or some, not all of the time", n)
		}
	}
	before := h.Delivered
	if n := reported(10 * time.Minute); h.Delivered-before > n+20 {
		t.Errorf("%d calls for %d values", h.Delivered-before, n)
	}
	for range 2 { // compared again, in turns
		h.SetState(kept, attunev1.ProposalState_PROPOSAL_STATE_LIFTED, "")
		if n := reported(20 * time.Second); n < 380 {
			t.Errorf("%d values in 20 s while it is lifted", n)
		}
		h.SetState(kept, attunev1.ProposalState_PROPOSAL_STATE_KEPT, "")
		if n := reported(55 * time.Second); n < 1050 {
			t.Errorf("%d values in 55 s after it was made again, want some at each sample: a turn begins anew after a pause", n)
		}
	}
	if n := reported(2 * time.Minute); n > 600 {
		t.Errorf("%d values in 2 min after that, want no turn longer than the comparison", n)
	}
	h.SetState(kept, attunev1.ProposalState_PROPOSAL_STATE_LIFTED, "")
	h.SetState(kept, attunev1.ProposalState_PROPOSAL_STATE_KEPT, "")
	h.SetState(kept, attunev1.ProposalState_PROPOSAL_STATE_KEPT, "") // the verdict
	if n := reported(80 * time.Second); n > 400 {
		t.Errorf("%d values of the objective in 80 s after the comparison, not all of the time", n)
	}
	h.SetState(kept, attunev1.ProposalState_PROPOSAL_STATE_UNDONE, "")
	if n := reported(2 * time.Minute); n > 0 || len(h.Proposals) != 1 {
		t.Errorf("%d values after it was undone, proposals %v", n, h.Proposals)
	}
	h.SetState(kept, attunev1.ProposalState_PROPOSAL_STATE_APPLYING, "") // it had made room, and is tried again
	if n := reported(20 * time.Second); n < 380 {
		t.Errorf("%d values in 20 s while it is tried again", n)
	}
	h.SetState(kept, attunev1.ProposalState_PROPOSAL_STATE_REFUSED, "")
	if n := reported(2 * time.Minute); n > 0 || len(h.Proposals) != 1 {
		t.Errorf("%d values after it was refused, proposals %v", n, h.Proposals)
	}
}

// A symptom that need not last is looked for from one sample to the next, and one that has to
// last longer than as many samples as are kept is found too.
func TestLasting(t *testing.T) {
	for _, lasting := range []time.Duration{0, 20 * time.Second} {
		h := tunlettest.Start(t, func() sdk.Tunlet { return perprocess.New(writes{}, lasting) }, nil, writer(5000))
		h.Run(40 * time.Second)
		if len(h.Proposals) != 1 || h.Proposals[0].At < lasting*9/10 {
			t.Errorf("lasting %v: proposals %v, want one after that", lasting, h.Proposals)
		}
	}
}
