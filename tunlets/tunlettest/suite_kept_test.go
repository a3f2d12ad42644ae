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
