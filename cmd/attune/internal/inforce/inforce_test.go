// SPDX-License-Identifier: Apache-2.0

package inforce

import (
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/attune-hpc/attune/controller/actuate"
	"github.com/attune-hpc/attune/controller/actuate/access"
	"github.com/attune-hpc/attune/controller/actuate/actuatetest"
	"github.com/attune-hpc/attune/controller/actuate/kinds"
	"github.com/attune-hpc/attune/controller/node"
	"github.com/attune-hpc/attune/internal/testing/targets"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// What attuned has changed for a session is listed beside what was changed by hand.
func TestChangesOfTheServiceAreListed(t *testing.T) {
	dir := t.TempDir()
	target := targets.Launch(t, exec.Command("sleep", "600"))
	journal := actuatetest.MustJournal(t, filepath.Join(dir, node.JournalFolder))
	defer journal.Close()
	a := actuate.New(actuate.Options{Journal: journal, Kinds: kinds.All(kinds.Options{})})
	change := &attunev1.Change{Id: "c1", Knob: "limit.nofile", Action: &attunev1.Action{
		Kind: &attunev1.Action_System{System: &attunev1.SystemSetting{
			Name: "limit.nofile", Value: access.TextValue("200"),
		}},
	}}
	if result := a.Apply(t.Context(), actuatetest.MustProcess(t, target.PID), change); result.GetOutcome() != attunev1.Outcome_OUTCOME_APPLIED {
		t.Fatal(result)
	}
	changes, err := below(dir, nil)
	if err != nil || len(changes) != 1 || changes[0].PID != target.PID || changes[0].By != ByService {
		t.Fatalf("%+v, %v", changes, err)
	}
	told := actuate.InForce{ID: "c1", PID: target.PID, Registration: "r"}
	if both, err := below(dir, []actuate.InForce{told, {ID: "c2"}}); err != nil || len(both) != 2 || both[0].Registration != "r" {
		t.Errorf("with what the service says: %+v, %v", both, err)
	}
	if none, err := below(t.TempDir(), nil); err != nil || none == nil || len(none) != 0 {
		t.Errorf("nothing: %v, %v", none, err)
	}
}
