// SPDX-License-Identifier: Apache-2.0

package actuate_test

import (
	"context"
	"testing"

	"github.com/attune-hpc/attune/controller/actuate"
	"github.com/attune-hpc/attune/controller/actuate/access"
	"github.com/attune-hpc/attune/controller/actuate/actuatetest"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

func TestSetOfProcesses(t *testing.T) {
	first, second := actuatetest.StartTuned(t, "testdata", all), actuatetest.StartTuned(t, "testdata", all)
	change := func(id string, value *attunev1.Value, required *attunev1.Value) *attunev1.Change {
		set := actuatetest.TunedVariable("ratio", value)
		set.RequiredOld = required
		return &attunev1.Change{Id: id, Action: actuatetest.Set(set)}
	}
	failing := &attunev1.Change{Id: "fails", Action: actuatetest.CallFunction(&attunev1.CallFunction{Object: "tuned", Symbol: "thread_id", Expect: access.Integer(-1)})}
	a := first.Actuator
	for _, row := range []struct {
		name     string
		items    []actuate.Item
		outcomes []attunev1.Outcome
		ratios   [2]string
	}{
		{
			"refused: nobody is touched",
			[]actuate.Item{{first.Process, change("a", actuatetest.Decimal(2), nil)}, {second.Process, change("b", actuatetest.Decimal(2), actuatetest.Decimal(7))}},
			[]attunev1.Outcome{attunev1.Outcome_OUTCOME_REFUSED, attunev1.Outcome_OUTCOME_REFUSED}, [2]string{"1.5", "1.5"},
		},
		{
			"fails: taken back",
			[]actuate.Item{{first.Process, change("a", actuatetest.Decimal(2), nil)}, {nil, change("n", actuatetest.Decimal(2), nil)}, {second.Process, failing}, {second.Process, change("b", actuatetest.Decimal(2), nil)}},
			[]attunev1.Outcome{attunev1.Outcome_OUTCOME_UNDONE, attunev1.Outcome_OUTCOME_GONE, attunev1.Outcome_OUTCOME_FAILED, attunev1.Outcome_OUTCOME_REFUSED},
			[2]string{"1.5", "1.5"},
		},
		{
			"made in both",
			[]actuate.Item{{first.Process, change("a", actuatetest.Decimal(2), nil)}, {second.Process, change("b", actuatetest.Decimal(3), nil)}},
			[]attunev1.Outcome{attunev1.Outcome_OUTCOME_APPLIED, attunev1.Outcome_OUTCOME_APPLIED}, [2]string{"2", "3"},
		},
	} {
		t.Run(row.name, func(t *testing.T) {
			results := a.ApplySet(context.Background(), row.items, actuate.SetHooks{})
			for n, want := range row.outcomes {
				if results[n].GetOutcome() != want || results[n].GetChangeId() != row.items[n].Change.GetId() ||
					(want != attunev1.Outcome_OUTCOME_APPLIED) != (results[n].GetReason() != "") {
					t.Errorf("change %d: %v, want %v", n, results[n], want)
				}
			}
			if got := [2]string{first.Ask(t, "ratio"), second.Ask(t, "ratio")}; got != row.ratios {
				t.Errorf("the programs have %v, want %v", got, row.ratios)
			}
		})
	}
}
