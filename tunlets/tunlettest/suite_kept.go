// SPDX-License-Identifier: Apache-2.0

package tunlettest

import (
	"strings"
	"time"

	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// watchPause is for how long a tunlet may leave the objective of a kept change alone: what
// the longest pause of perprocess.Looks is, and the looks around it.
const watchPause = 80 * time.Second

// reportsKept checks that the objective of a change that was kept is reported further: the
// Analyzer watches over the change by nothing else. Nothing general can be said of what is
// about several processes at once: they come and go, and with them what they achieve together.
func reportsKept(tb TB, s subject) {
	h := s.harness(tb)
	h.StartSession()
	for _, trouble := range s.trouble {
		h.StartProcess(trouble())
	}
	for range int(10 * time.Second / Period) {
		if h.Round(); len(h.Proposals) > 0 {
			break
		}
	}
	if len(h.Proposals) == 0 { // it needs more than processes in trouble, such as options
		return
	}
	kept := h.Proposals[0]
	if !strings.HasPrefix(kept.GetScope(), "process/") {
		return
	}
	for _, state := range []attunev1.ProposalState{
		attunev1.ProposalState_PROPOSAL_STATE_APPLYING, attunev1.ProposalState_PROPOSAL_STATE_APPLIED, attunev1.ProposalState_PROPOSAL_STATE_KEPT,
	} {
		h.SetState(kept.GetId(), state, "")
	}
	for _, p := range h.Processes() { // which the change has cured
		p.Rates = Computing().Rates
	}
	h.Run(watchPause)
	for range 2 {
		h.Objectives = nil
		h.Run(watchPause)
		values := 0
		for _, o := range h.Objectives {
			if o.GetScope() == kept.GetScope() {
				values++
			}
		}
		if values == 0 {
			tb.Errorf("no value of the objective in scope %q for %v after %s was kept: nobody would see that it does harm by then; see perprocess.Looks",
				kept.GetScope(), watchPause, kept.GetId())
			return
		}
	}
}
