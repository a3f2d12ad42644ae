// SPDX-License-Identifier: Apache-2.0

package action

import (
	"testing"

	"github.com/attune-hpc/attune/controller/actuate/access"
	"github.com/attune-hpc/attune/controller/actuate/actuatetest"
	"github.com/attune-hpc/attune/internal/testing/targets"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// TestAnotherImage: what was meant for a program that has executed itself again is done
// to nothing, whether its memory was held or not, or is there still.
func TestAnotherImage(t *testing.T) {
	for _, program := range []string{"plain", "shares"} {
		for _, held := range []bool{false, true} {
			i := actuatetest.NewRig(t, targets.StartProgram(t, program), Kinds())
			if held {
				if _, err := i.Process.Hold(); err != nil {
					t.Fatal(err)
				}
			}
			if err := i.Say("exec"); err != nil {
				t.Fatal(err)
			}
			i.Expect(t, "ready")
			got := i.Apply(t, "c", actuatetest.Set(&attunev1.SetVariable{Symbol: "target_variable", Value: access.Integer(6)}))
			if got.GetOutcome() != attunev1.Outcome_OUTCOME_GONE {
				t.Errorf("%s, held %v: %v", program, held, got)
			}
			if got := i.Ask(t, "variable"); got != "5" {
				t.Errorf("%s, held %v: the variable is %s", program, held, got)
			}
		}
	}
}
