// SPDX-License-Identifier: Apache-2.0

//go:build amd64

package actuate

import (
	"strings"
	"testing"

	"github.com/attune-hpc/attune/controller/policy"
	"github.com/attune-hpc/attune/internal/authn"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

func TestPolicyComesFirst(t *testing.T) {
	i, library := startInside(t), buildLibrary(t)
	rules, err := policy.Parse("rules", []byte(`
rules:
  - deny: [set]
    names: ["tuned:counter"]
  - allow: [set]
    names: ["tuned:ratio"]
    max: 2
  - deny: [call]
    names: ["libc.so.6:*"]
  - deny: [load, setting]
  - deny: [system]
    names: [limit.*]
`))
	if err != nil {
		t.Fatal(err)
	}
	i.actuator.options.Policy = func() *policy.Policy { return rules }
	before := i.Ask(t, "counter")
	for _, row := range []struct {
		rule   string
		action *attunev1.Action
	}{
		{"rule 1", write(setting1("counter@tuned.c", integer(5)))},
		{"rule 2", write(setting1("ratio", decimal(2.5)))},
		{"rule 3", calling(&attunev1.CallFunction{Object: "libc*", Symbol: "getpid"})},
		{"rule 4", loadOf(&attunev1.LoadLibrary{Path: library})},
		{"rule 4", &attunev1.Action{Kind: &attunev1.Action_Setting{Setting: &attunev1.NamedSetting{Name: "glibc.malloc.top_pad", Value: integer(0)}}}},
		{"rule 5", &attunev1.Action{Kind: &attunev1.Action_System{System: &attunev1.SystemSetting{Name: "limit.core", Value: integer(0)}}}},
	} {
		got := i.apply(t, "c", row.action)
		if got.GetOutcome() != attunev1.Outcome_OUTCOME_REFUSED || !strings.Contains(got.GetReason(), row.rule+" of rules") {
			t.Errorf("%v: %v, want %s", row.action, got, row.rule)
		}
	}
	agreed := &attunev1.Change{
		Id: "c", Action: setting("mpi_t.eager_limit", 1),
	}
	got := i.actuator.ApplySet(t.Context(), []Item{{i.process, agreed}}, SetHooks{})[0]
	if got.GetOutcome() != attunev1.Outcome_OUTCOME_REFUSED || !strings.Contains(got.GetReason(), "rule 4 of rules") {
		t.Errorf("at an agreed call: %v", got)
	}
	if got := i.Ask(t, "counter"); got != before {
		t.Errorf("the program has %s, had %s", got, before)
	}
	i.actuator.options.Asker = authn.OfUser(4711)
	i.actuator.options.Policy = nil
	if got := i.apply(t, "c", write(setting1("ratio", decimal(2)))); got.GetOutcome() != attunev1.Outcome_OUTCOME_REFUSED || !strings.Contains(got.GetReason(), "belongs to user") {
		t.Errorf("another user's process: %v", got)
	}
}
