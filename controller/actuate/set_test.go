// SPDX-License-Identifier: Apache-2.0

//go:build amd64

package actuate

import (
	"context"
	"testing"

	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

func TestSetOfProcesses(t *testing.T) {
	first, second := startInside(t), startInside(t)
	change := func(id string, value *attunev1.Value, required *attunev1.Value) *attunev1.Change {
		set := setting1("ratio", value)
		set.RequiredOld = required
		return &attunev1.Change{Id: id, Action: write(set)}
	}
	failing := &attunev1.Change{Id: "fails", Action: calling(&attunev1.CallFunction{Object: "tuned", Symbol: "thread_id", Expect: integer(-1)})}
	a := first.actuator
	for _, row := range []struct {
		name     string
		items    []Item
		outcomes []attunev1.Outcome
		ratios   [2]string
	}{
		{
			"refused: nobody is touched",
			[]Item{{first.process, change("a", decimal(2), nil)}, {second.process, change("b", decimal(2), decimal(7))}},
			[]attunev1.Outcome{attunev1.Outcome_OUTCOME_REFUSED, attunev1.Outcome_OUTCOME_REFUSED}, [2]string{"1.5", "1.5"},
		},
		{
			"fails: taken back",
			[]Item{{first.process, change("a", decimal(2), nil)}, {nil, change("n", decimal(2), nil)}, {second.process, failing}, {second.process, change("b", decimal(2), nil)}},
			[]attunev1.Outcome{attunev1.Outcome_OUTCOME_UNDONE, attunev1.Outcome_OUTCOME_GONE, attunev1.Outcome_OUTCOME_FAILED, attunev1.Outcome_OUTCOME_REFUSED},
			[2]string{"1.5", "1.5"},
		},
		{
			"made in both",
			[]Item{{first.process, change("a", decimal(2), nil)}, {second.process, change("b", decimal(3), nil)}},
			[]attunev1.Outcome{attunev1.Outcome_OUTCOME_APPLIED, attunev1.Outcome_OUTCOME_APPLIED}, [2]string{"2", "3"},
		},
	} {
		t.Run(row.name, func(t *testing.T) {
			results := a.ApplySet(context.Background(), row.items, SetHooks{})
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
