// SPDX-License-Identifier: Apache-2.0

package tunlettest

import (
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"

	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// watchPause is for how long a tunlet may leave the objective of a kept change alone: what
// the longest pause of perprocess.Looks is, and the looks around it.
const watchPause = 80 * time.Second

// rejudged is within what time a tunlet proposes once more what it takes for better.
const rejudged = 15 * time.Second

// reportsKept checks that the objective of a change that was kept is reported further: the
// Analyzer watches over the change by nothing else. Nothing general can be said of what is
// about several processes at once: they come and go, and with them what they achieve together.
func reportsKept(tb TB, s subject) {
	h := s.harness(tb)
	kept := keepFirst(tb, h, s)
	if kept == nil || !ofProcess(kept) {
		return
	}
	cure(h)
	h.Run(watchPause)
	for range 2 {
		if !reports(h, kept) {
			tb.Errorf("no value of the objective in scope %q for %v after %s was kept: nobody would see that it does harm by then; see perprocess.Looks",
				kept.GetScope(), watchPause, kept.GetId())
			return
		}
	}
}

// takesUpKept checks that a tunlet that was started again goes on with its change that was
// kept: it gives no proposal the same id, reports the objective further, as in reportsKept, and
// proposes the same no more, unless it does so without a restart: a simulated process stays as
// it was, whatever is changed in it.
func takesUpKept(tb TB, s subject) {
	h := s.harness(tb)
	kept := keepFirst(tb, h, s)
	if kept == nil {
		return
	}
	h.Run(rejudged)
	already := slices.ContainsFunc(h.Proposals[1:], func(p Proposed) bool { return repeatsChange(kept, p) })
	before := len(h.Proposals)
	Restart(h, kept)
	h.Run(rejudged)
	if ofProcess(kept) {
		cure(h)
		if !reports(h, kept) {
			tb.Errorf("started again, it reported no value of the objective in scope %q for %v, where it had kept %s: see ProposalChange.Earlier and perprocess.Looks",
				kept.GetScope(), watchPause, kept.GetId())
		}
	}
	for _, p := range h.Proposals[before:] {
		if p.GetId() == kept.GetId() || !already && repeatsChange(kept, p) {
			tb.Errorf("started again, it proposed %v, where it had kept %v: see ProposalChange.Earlier", p.Proposal, kept)
			return
		}
	}
}

// leisure is how often processes are sampled where nothing has happened for some seconds.
const leisure = 250 * time.Millisecond

// findsAtLeisure expects of a tunlet that proposes something where samples come quickly that it
// does where they are rare: so they are a few seconds after a program's start.
func findsAtLeisure(tb TB, s subject) {
	tb.Helper()
	quick := s.harness(tb)
	if keepFirst(tb, quick, s) == nil {
		return
	}
	h := s.harness(tb)
	h.Pace = leisure
	h.StartSession()
	for _, trouble := range s.trouble {
		h.StartProcess(trouble())
	}
	for h.Elapsed() < time.Minute && len(h.Proposals) == 0 {
		h.Round()
	}
	if len(h.Proposals) == 0 {
		tb.Errorf("with samples each %v it proposed nothing in a minute, where it does with samples each %v: let what it waits for last longer, or take fewer of them",
			leisure, Period)
	}
}

// keepFirst runs a session until the tunlet proposes something, and has that kept; nil: it needs
// more than processes in trouble, such as options.
func keepFirst(tb TB, h *Harness, s subject) *attunev1.Proposal {
	tb.Helper()
	h.StartSession()
	for _, trouble := range s.trouble {
		h.StartProcess(trouble())
	}
	for range int(10 * time.Second / Period) {
		if h.Round(); len(h.Proposals) > 0 {
			break
		}
	}
	if len(h.Proposals) == 0 {
		if s.sure {
			tb.Errorf("not one proposal for processes in trouble")
		}
		return nil
	}
	kept := h.Proposals[0]
	for _, state := range []attunev1.ProposalState{
		attunev1.ProposalState_PROPOSAL_STATE_APPLYING, attunev1.ProposalState_PROPOSAL_STATE_APPLIED, attunev1.ProposalState_PROPOSAL_STATE_KEPT,
	} {
		h.SetState(kept.GetId(), state, "")
	}
	return kept.Proposal
}

// ofProcess says whether a proposal is judged by the objective of one process.
func ofProcess(p *attunev1.Proposal) bool { return strings.HasPrefix(p.GetScope(), "process/") }

// cure has the processes do what they do when the change has cured them.
func cure(h *Harness) {
	for _, p := range h.Processes() {
		p.Rates = Computing().Rates
	}
}

// reports says whether the objective of a proposal is reported within watchPause.
func reports(h *Harness, p *attunev1.Proposal) bool {
	h.tb.Helper()
	h.Objectives = nil
	h.Run(watchPause)
	return slices.ContainsFunc(h.Objectives, func(o *attunev1.ObjectiveSample) bool { return o.GetScope() == p.GetScope() })
}

// repeatsChange says whether a proposal has a change that was kept.
func repeatsChange(kept *attunev1.Proposal, p Proposed) bool {
	return slices.ContainsFunc(p.GetChanges(), func(c *attunev1.Change) bool {
		return slices.ContainsFunc(kept.GetChanges(), func(o *attunev1.Change) bool {
			return o.GetProcess() == c.GetProcess() && o.GetKnob() == c.GetKnob() && proto.Equal(o.GetAction(), c.GetAction())
		})
	})
}
