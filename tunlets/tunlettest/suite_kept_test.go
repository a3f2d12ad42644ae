// SPDX-License-Identifier: Apache-2.0

package tunlettest

import (
	"strings"
	"testing"

	"github.com/attune-hpc/attune/tunlets/sdk"
)

// reporter proposes one change, and reports its objective at each sample: until then, or further.
type reporter struct {
	good

	further bool
}

func (r *reporter) HandleSamples(h *sdk.Host, s sdk.Samples) {
	const scope = "process/1"
	for _, sample := range s.Items {
		first := !r.proposed[sample.Process]
		if first || r.further {
			h.Objective(scope, 1)
		}
		if first {
			p := proposal(sample.Process)
			p.Scope = scope
			h.Propose(p)
		}
		r.proposed[sample.Process] = true
	}
}

// TestSuiteFindsWhoReportsNoMore: who reports nothing of what was kept fails, and nobody else.
func TestSuiteFindsWhoReportsNoMore(t *testing.T) {
	for _, further := range []bool{false, true} {
		failures := failing(t, "reports the objective of what was kept", func() sdk.Tunlet {
			return &reporter{*newGood().(*good), further}
		})
		if found := strings.Contains(failures, `no value of the objective in scope "process/1"`); found == further || further && failures != "" {
			t.Errorf("reports further: %v; the check says %q", further, failures)
		}
	}
}

// rememberer reports further, and knows what it had kept when it is started again.
type rememberer struct{ reporter }

func (r *rememberer) ProposalChanged(_ *sdk.Host, c sdk.ProposalChange) {
	if c.Earlier != nil {
		r.proposed[c.Earlier.Changes[0].Process] = true
	}
}

// TestSuiteFindsWhoForgets: who proposes the same again when it is started again fails, and
// nobody else.
func TestSuiteFindsWhoForgets(t *testing.T) {
	for _, remembers := range []bool{false, true} {
		failures := failing(t, "takes up what it had kept when it is started again", func() sdk.Tunlet {
			r := reporter{*newGood().(*good), true}
			if remembers {
				return &rememberer{r}
			}
			return &r
		})
		if found := strings.Contains(failures, "started again, it proposed"); found == remembers || remembers && failures != "" {
			t.Errorf("remembers: %v; the check says %q", remembers, failures)
		}
	}
}
