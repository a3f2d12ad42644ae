// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"encoding/json"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/attune-hpc/attune/analyzer/store"
	"github.com/attune-hpc/attune/cmd/attune/advice"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// advised puts an advice about the program's own pipe into the store, of a run that
// ended at a time.
func (k *tuneTest) advised(t *testing.T, id string, at time.Time) {
	t.Helper()
	number, err := strconv.ParseInt(k.pipe, 10, 32)
	if err != nil {
		t.Fatal(err)
	}
	fd := int32(number)
	err = advice.WithKnowledge(t.Context(), func(s *store.Store) error {
		return s.Record(t.Context(), []store.Trial{{
			Advice: id, Application: "00ff", Executable: "/nowhere/keeper", Tunlet: "pipe", Why: "the pipe is full",
			Predicted: 3, Confidence: 0.8, Result: store.Given, At: at,
			Changes: []*attunev1.Change{{Knob: "pipe.size", Action: &attunev1.Action{Kind: &attunev1.Action_System{
				System: &attunev1.SystemSetting{Name: "pipe.size", On: &fd, Value: &attunev1.Value{Kind: &attunev1.Value_Integer{Integer: 131072}}},
			}}}},
		}})
	})
	if err != nil {
		t.Fatal(err)
	}
}

// An advice is listed, applied to a running program, and taken back.
func TestAdvice(t *testing.T) {
	k := newTuneTest(t)
	k.advised(t, "aa11bb", time.Now())
	k.advised(t, "aa22bb", time.Now().Add(-time.Hour))
	k.want(t, "advice list", 0, "aa11bb", "keeper", "pipe", "3x", "set pipe.size@"+k.pipe+"=131072")
	k.want(t, "advice show aa1", 0, "the pipe is full", "80 % sure", "recommended in 1, kept in 0, undone in 0")
	k.want(t, "__complete advice show ''", 0, "aa22bb\tpipe")
	k.want(t, "advice show aa", 1, "several ids begin with aa", "attune advice list")
	k.want(t, "advice show ff", 1, "no such advice")
	k.want(t, "advice apply aa1", 1, "no process of yours runs /nowhere/keeper", "name processes")
	k.want(t, "advice apply aa1 seven", 2, "no process id")
	k.want(t, "advice apply aa2 $P", 1, "of a run that is over", "attune attach")
	k.want(t, "advice apply --dry-run aa1 $P", 0, "would change")
	if got := k.Ask(t, "pipe"); got != "65536" {
		t.Fatalf("the program has %s after a dry run", got)
	}
	k.want(t, "advice apply aa1 $P", 0, "65536 → 131072")
	if got := k.Ask(t, "pipe"); got != "131072" {
		t.Fatalf("the program has %s", got)
	}
	k.want(t, "advice undo aa2", 0, "nothing of advice aa22bb is in force")
	k.want(t, "advice undo aa1", 0, "undone: change")
	if got := k.Ask(t, "pipe"); got != "65536" || len(k.changes(t)) != 0 {
		t.Errorf("the program has %s after undo", got)
	}
	k.want(t, "advice undo aa1", 0, "nothing of advice aa11bb is in force")
	k.want(t, "advice forget aa1", 0, "forgotten: advice aa11bb")
	var left []struct {
		ID string `json:"id"`
	}
	if err := json.Unmarshal([]byte(k.want(t, "advice list --json", 0).stdout), &left); err != nil || len(left) != 1 || left[0].ID != "aa22bb" {
		t.Errorf("%v %v", left, err)
	}
}

// unread has descriptor 3 be a pipe whose reader has gone.
const unread = "mkfifo unread; true <unread & exec 3>unread; wait $!; "

// TestUnsaidChanges: a change whose answer cannot be written stays, which the error says, and is
// known as a change by hand and as one of the advice.
func TestUnsaidChanges(t *testing.T) {
	k := newTuneTest(t)
	k.advised(t, "cc11dd", time.Now())
	for name, row := range map[string]struct{ before, command, to, undo string }{
		"by hand, on a full disk":   {"", "tune $P pipe.size@$R=128K", ">/dev/full", ""},
		"in JSON":                   {"", "tune --json $P pipe.size@$R=128K", ">/dev/full", ""},
		"by hand, without a reader": {unread, "tune $P pipe.size@$R=128K", ">&3", ""},
		"of an advice":              {"", "advice apply cc1 $P", ">/dev/full", "advice undo cc1"},
		"without a reader":          {unread, "advice apply cc1 $P", ">&3", "advice undo cc1"},
	} {
		t.Run(name, func(t *testing.T) {
			got := shell(t, row.before+"P="+strconv.Itoa(k.PID)+" R="+k.pipe+"; $ATTUNE_BINARY "+row.command+row.to, "")
			changes := k.changes(t)
			if size := k.Ask(t, "pipe"); size != "131072" || len(changes) != 1 {
				t.Fatalf("the program has %s, changes %v: %+v", size, changes, got)
			}
			id := changes[0].ID
			if want := "what was done stays: change " + id + "; attune undo " + id + " takes changes back\n"; got.code != 1 || !strings.HasSuffix(got.stderr, want) {
				t.Errorf("%+v, want %q", got, want)
			}
			k.want(t, cmp.Or(row.undo, "undo "+id), 0, "undone: change "+id)
			if size := k.Ask(t, "pipe"); size != "65536" {
				t.Errorf("the program has %s after undo", size)
			}
		})
	}
}
