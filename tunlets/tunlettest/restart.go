// SPDX-License-Identifier: Apache-2.0

package tunlettest

import (
	"cmp"

	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
	"github.com/attune-hpc/attune/tunlets/sdk"
	"github.com/attune-hpc/attune/tunlets/sdk/feed"
	"github.com/attune-hpc/attune/tunlets/sdk/samplefilter"
)

// Restart has the tunlet of a harness die, and starts another one in the same session, as the Analyzer
// does: it does not sleep, and is told when the session began, of the processes that live, and then
// of what was kept.
func Restart(h *Harness, kept ...*attunev1.Proposal) {
	h.tb.Helper()
	h.Client = h.serve(h.tb)
	h.points, h.order, h.feed, h.wakes = map[string]*point{}, nil, feed.Feed{}, samplefilter.Wakes{}
	ctx, cancel := h.Context()
	defer cancel()
	if _, err := h.Client.Describe(ctx, &attunev1.DescribeRequest{ApiVersions: []string{sdk.APIVersion}}); err != nil {
		h.tb.Fatalf("describe: %v", err)
	}
	configure(h, h.Options)
	openSession(h, cmp.Or(h.Mode, "tune"), begin())
	for _, p := range h.Processes() {
		h.announce(p, false)
	}
	for _, p := range kept {
		proposalChanged(h, &attunev1.ProposalChangedRequest{
			ProposalId: p.GetId(), State: attunev1.ProposalState_PROPOSAL_STATE_KEPT, Earlier: p,
		})
	}
}

// proposalChanged tells what became of a proposal.
func proposalChanged(h *Harness, r *attunev1.ProposalChangedRequest) {
	h.tb.Helper()
	call(h, one(h.Client.ProposalChanged), r)
}
