// SPDX-License-Identifier: Apache-2.0

package action

import (
	"strings"
	"testing"

	"github.com/attune-hpc/attune/controller/actuate/access"
	"github.com/attune-hpc/attune/controller/actuate/actuatetest"
	"github.com/attune-hpc/attune/internal/testing/targets"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// What an indirect function has chosen is changed as any function is, unless
// another one may have chosen the same.
func TestIndirectFunctions(t *testing.T) {
	for name, flags := range map[string][]string{"PIE": {"-O2"}, "fixed addresses": {"-O2", "-no-pie"}, "stripped": {"-O2", "-rdynamic", "-s"}} {
		t.Run(name, func(t *testing.T) {
			target := targets.Start(t, targets.Build(t, "../testdata/chosen.c", flags...))
			i := &tuned{actuatetest.NewRig(t, target, Kinds())}
			function := func(symbol string) *attunev1.Function { return &attunev1.Function{Object: "chosen", Symbol: symbol} }
			remove := func(symbol string) *attunev1.Action {
				return &attunev1.Action{Kind: &attunev1.Action_Remove{Remove: &attunev1.RemoveCall{Function: function(symbol), Returns: access.Integer(7)}}}
			}
			mustAnswer := func(want string) {
				t.Helper()
				if got := i.Ask(t, "call"); got != want {
					t.Errorf("it answers %s, want %s", got, want)
				}
			}
			mustAnswer("50 6 6 4")
			if got := i.Apply(t, "a", remove("alone")); got.GetOutcome() != attunev1.Outcome_OUTCOME_APPLIED {
				t.Fatal(got)
			}
			mustAnswer("7 6 6 4")
			for _, twin := range []string{"twin", "other_twin"} {
				if got := i.Apply(t, twin, remove(twin)); got.GetOutcome() != attunev1.Outcome_OUTCOME_REFUSED || !strings.Contains(got.GetReason(), "may have chosen the same code") {
					t.Errorf("%s: %v", twin, got)
				}
			}
			if got := i.Apply(t, "s", replacing(function("shown"), function("alone"))); got.GetOutcome() != attunev1.Outcome_OUTCOME_APPLIED || got.GetWay() != string(access.WayEntry) {
				t.Errorf("replace: %v", got)
			}
			mustAnswer("7 6 6 7")
			for _, change := range []string{"s", "a"} {
				if got := i.Actuator.Undo(t.Context(), change); got.GetOutcome() != attunev1.Outcome_OUTCOME_UNDONE {
					t.Errorf("undo: %v", got)
				}
			}
			mustAnswer("50 6 6 4")
		})
	}
}
