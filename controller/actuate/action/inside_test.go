// SPDX-License-Identifier: Apache-2.0

package action

import (
	"strconv"
	"strings"
	"testing"

	"github.com/attune-hpc/attune/controller/actuate/access"
	"github.com/attune-hpc/attune/controller/actuate/actuatetest"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

func TestStaticVariables(t *testing.T) {
	i := startTuned(t)
	if got := i.Apply(t, "c", actuatetest.Set(actuatetest.TunedVariable("counter", access.Integer(5)))); got.GetOutcome() != attunev1.Outcome_OUTCOME_REFUSED ||
		!strings.Contains(got.GetReason(), "counter@tuned.c") || !strings.Contains(got.GetReason(), "counter@tuned_other.c") {
		t.Errorf("two of one name: %v, want both listed", got)
	}
	if got := i.Apply(t, "c", actuatetest.Set(actuatetest.TunedVariable("counter@tuned_other.c", access.Integer(5)))); got.GetOutcome() != attunev1.Outcome_OUTCOME_APPLIED || got.GetWay() != string(access.WayMemory) {
		t.Fatal(got)
	}
	if got := i.Ask(t, "counter"); got != "1 5" {
		t.Errorf("the program has %s, want 1 5", got)
	}
	i.Actuator.Undo(t.Context(), "c")
	if got := i.Ask(t, "counter"); got != "1 2" {
		t.Errorf("the program has %s afterwards, want 1 2", got)
	}
}

func TestTypesOfVariables(t *testing.T) {
	i := startTuned(t)
	for _, row := range []struct {
		symbol string
		value  *attunev1.Value
		reason string // empty: applied
	}{
		{"fixed", access.Integer(4), "is constant"},
		{"counter@tuned.c", actuatetest.Decimal(2), "takes no real number"},
		{"ratio", access.Integer(2), ""},
	} {
		got := i.Apply(t, row.symbol, actuatetest.Set(actuatetest.TunedVariable(row.symbol, row.value)))
		applied := got.GetOutcome() == attunev1.Outcome_OUTCOME_APPLIED
		if applied != (row.reason == "") || !strings.Contains(got.GetReason(), row.reason) {
			t.Errorf("%s: %v, want %q", row.symbol, got, row.reason)
		}
	}
	if got := i.Ask(t, "ratio"); got != "2" {
		t.Errorf("a double that was given a whole number is %s, want 2", got)
	}
}

func TestThreadLocalVariable(t *testing.T) {
	i := startTuned(t)
	second, err := strconv.Atoi(i.Ask(t, "second"))
	if err != nil {
		t.Fatal(err)
	}
	one := actuatetest.TunedVariable("own", access.Integer(20))
	one.Thread = int32(second)
	if got := i.Apply(t, "one", actuatetest.Set(one)); got.GetOutcome() != attunev1.Outcome_OUTCOME_APPLIED || got.GetOldValue().GetInteger() != 10 {
		t.Fatal(got)
	}
	if got := i.Ask(t, "own"); got != "10 20" {
		t.Errorf("the threads have %s, want 10 20", got)
	}
	got := i.Apply(t, "all", actuatetest.Set(actuatetest.TunedVariable("own", access.Integer(30))))
	if got.GetOutcome() != attunev1.Outcome_OUTCOME_APPLIED || !strings.Contains(got.GetPartial(), "start later") {
		t.Fatal(got)
	}
	if got := i.Ask(t, "own"); got != "30 30" {
		t.Errorf("the threads have %s, want 30 30", got)
	}
	// What a controller that was killed has left is undone from its journal.
	for _, id := range []string{"all", "one"} {
		if err := i.TakeBackLeft(t, id); err != nil {
			t.Error(err)
		}
	}
	if got := i.Ask(t, "own"); got != "10 10" {
		t.Errorf("the threads have %s afterwards, want 10 10", got)
	}
	one.Thread = 1
	if got := i.Apply(t, "none", actuatetest.Set(one)); got.GetOutcome() != attunev1.Outcome_OUTCOME_REFUSED {
		t.Errorf("a thread of another process: %v", got)
	}
}
