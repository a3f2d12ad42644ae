// SPDX-License-Identifier: Apache-2.0

package changes

import (
	"bytes"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/attune-hpc/attune/cmd/attune/internal/cli"
	"github.com/attune-hpc/attune/controller/actuate"
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
	change := &attunev1.Change{Id: "c1", Knob: "thread.nice", Action: &attunev1.Action{
		Kind: &attunev1.Action_System{System: &attunev1.SystemSetting{
			Name: "thread.nice", Value: &attunev1.Value{Kind: &attunev1.Value_Integer{Integer: 5}},
		}},
	}}
	if result := a.Apply(t.Context(), actuatetest.MustProcess(t, target.PID), change); result.GetOutcome() != attunev1.Outcome_OUTCOME_APPLIED {
		t.Fatal(result)
	}
	changes, err := inForceBelow(dir)
	if err != nil || len(changes) != 1 || changes[0].PID != target.PID || changes[0].By != byService {
		t.Fatalf("%+v, %v", changes, err)
	}
	var out bytes.Buffer
	if err := writeChanges(&cli.Env{Stdout: &out}, changes); err != nil || !strings.Contains(out.String(), "thread.nice") ||
		!strings.HasSuffix(strings.TrimSpace(out.String()), " attuned") {
		t.Errorf("%v: %s", err, out.String())
	}
	if none, err := inForceBelow(t.TempDir()); err != nil || none == nil || len(none) != 0 {
		t.Errorf("nothing: %v, %v", none, err)
	}
}
