// SPDX-License-Identifier: Apache-2.0

package actuate_test

import (
	"strings"
	"testing"

	"github.com/attune-hpc/attune/controller/actuate"
	"github.com/attune-hpc/attune/controller/actuate/access"
	"github.com/attune-hpc/attune/controller/actuate/actuatetest"
	"github.com/attune-hpc/attune/controller/policy"
	"github.com/attune-hpc/attune/internal/authn"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

func TestPolicyComesFirst(t *testing.T) {
	i := actuatetest.StartTuned(t, "testdata", all)
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
	i.Actuator = actuate.New(actuate.Options{Kinds: all, Journal: i.Kept.Journal, Policy: func() *policy.Policy { return rules }})
	before := i.Ask(t, "counter")
	for _, row := range []struct {
		rule   string
		action *attunev1.Action
	}{
		{"rule 1", actuatetest.Set(actuatetest.TunedVariable("counter@tuned.c", access.Integer(5)))},
		{"rule 2", actuatetest.Set(actuatetest.TunedVariable("ratio", actuatetest.Decimal(2.5)))},
		{"rule 3", actuatetest.CallFunction(&attunev1.CallFunction{Object: "libc*", Symbol: "getpid"})},
		{"rule 4", actuatetest.Load(&attunev1.LoadLibrary{Path: "/lib/any.so"})},
		{"rule 4", &attunev1.Action{Kind: &attunev1.Action_Setting{Setting: &attunev1.NamedSetting{Name: "glibc.malloc.top_pad", Value: access.Integer(0)}}}},
		{"rule 5", &attunev1.Action{Kind: &attunev1.Action_System{System: &attunev1.SystemSetting{Name: "limit.core", Value: access.Integer(0)}}}},
	} {
		got := i.Apply(t, "c", row.action)
		if got.GetOutcome() != attunev1.Outcome_OUTCOME_REFUSED || !strings.Contains(got.GetReason(), row.rule+" of rules") {
			t.Errorf("%v: %v, want %s", row.action, got, row.rule)
		}
	}
	agreed := &attunev1.Change{
		Id: "c", Action: actuatetest.Setting("mpi_t.eager_limit", 1),
	}
	got := i.Actuator.ApplySet(t.Context(), []actuate.Item{{i.Process, agreed}}, actuate.SetHooks{})[0]
	if got.GetOutcome() != attunev1.Outcome_OUTCOME_REFUSED || !strings.Contains(got.GetReason(), "rule 4 of rules") {
		t.Errorf("at an agreed call: %v", got)
	}
	if got := i.Ask(t, "counter"); got != before {
		t.Errorf("the program has %s, had %s", got, before)
	}
	i.Actuator = actuate.New(actuate.Options{Kinds: all, Journal: i.Kept.Journal, Asker: authn.OfUser(4711)})
	if got := i.Apply(t, "c", actuatetest.Set(actuatetest.TunedVariable("ratio", actuatetest.Decimal(2)))); got.GetOutcome() != attunev1.Outcome_OUTCOME_REFUSED || !strings.Contains(got.GetReason(), "belongs to user") {
		t.Errorf("another user's process: %v", got)
	}
}
