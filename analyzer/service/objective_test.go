// SPDX-License-Identifier: Apache-2.0

package service

import (
	"strings"
	"testing"

	"github.com/attune-hpc/attune/internal/objective"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// Nothing of a user's is executed outside of their jobs; all else may be an objective.
func TestObjectivesOfRegistrations(t *testing.T) {
	for text, want := range map[string]struct{ nodes, refused string }{
		"":                        {},
		"output:^step":            {nodes: "output:^step"},
		"rate file:log:n=([0-9])": {nodes: "rate file:log:n=([0-9])"},
		"point:libc.so.6:write":   {},
		"less command:./latency":  {refused: "runs no command of a user's"},
		"output:(":                {refused: "missing closing"},
		"output:(a{500}){500}":    {refused: "invalid repeat count"},
	} {
		r := &attunev1.Registration{Executable: "solver", Mode: "tune", Objective: text}
		err := ValidateRegistration(r)
		if want.refused != "" {
			if err == nil || !strings.Contains(err.Error(), want.refused) {
				t.Errorf("%q: %v, want %q", text, err, want.refused)
			}
			continue
		}
		spec, parsed := objective.OfService(text)
		if err != nil || parsed != nil || (spec == nil) != (text == "") || nodesMeasure(spec, text) != want.nodes {
			t.Errorf("%q: %v, %v, %v", text, spec, err, parsed)
		}
	}
}
