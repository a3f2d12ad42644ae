// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/attune-hpc/attune/controller/actuate"
	"github.com/attune-hpc/attune/controller/actuate/actuatetest"
	"github.com/attune-hpc/attune/controller/actuate/kinds"
	"github.com/attune-hpc/attune/internal/rundir"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// changeAsRun changes the program's pipe as a run does, which lives until its journal is
// closed, and is killed then: the journal stays.
func (k *tuneTest) changeAsRun(t *testing.T, id string) *actuate.Journal {
	t.Helper()
	dir, err := rundir.Current().LastingStateDir()
	if err != nil {
		t.Fatal(err)
	}
	fd, err := strconv.Atoi(k.pipe)
	if err != nil {
		t.Fatal(err)
	}
	journal := actuatetest.MustJournal(t, dir)
	actuator := actuate.New(actuate.Options{Journal: journal, Kinds: kinds.All(kinds.Options{})})
	actuatetest.MustApply(t, actuator, actuatetest.MustProcess(t, k.PID), &attunev1.Change{
		Id: id, Knob: "pipe.size", Action: &attunev1.Action{Kind: &attunev1.Action_System{System: &attunev1.SystemSetting{
			Name: "pipe.size", On: new(int32(fd)), Value: &attunev1.Value{Kind: &attunev1.Value_Text{Text: "128K"}},
		}}},
	})
	return journal
}

// What a run has changed is listed. Once it is killed, it can be taken back: by hand, and
// by the switch, turned already or not.
func TestUndoOfAKilledRun(t *testing.T) {
	for i, undo := range []string{"undo --all", "off", "off"} {
		if i < 2 {
			ownSwitch(t)
		}
		k, id := newTuneTest(t), "killed"+strconv.Itoa(i)
		journal := k.changeAsRun(t, id)
		k.want(t, "changes", 0, id)
		k.want(t, "undo "+id, 1, "no such change", "attune undo --all")
		if got := k.want(t, "undo --all", 0); strings.Contains(got.stdout, id) {
			t.Errorf("it is taken from a run that lives: %+v", got)
		}
		if err := journal.Close(); err != nil {
			t.Fatal(err)
		}
		k.want(t, undo, 0, "undone: change "+id+", pipe.size of process "+strconv.Itoa(k.PID)+" (keeper)")
		if got := k.Ask(t, "pipe"); got != "65536" || len(k.changes(t)) != 0 {
			t.Errorf("%s: the program has %s", undo, got)
		}
	}
}

// What was changed by hand on top of what a killed run had changed is undone first, so that
// the program has what it had before both.
func TestUndoAboveAKilledRun(t *testing.T) {
	ownSwitch(t)
	k := newTuneTest(t)
	if err := k.changeAsRun(t, "killed").Close(); err != nil {
		t.Fatal(err)
	}
	k.want(t, "tune "+strconv.Itoa(k.PID)+" pipe.size=256K", 0)
	k.want(t, "off", 1, "change killed", "made on top of it, stays")
	k.want(t, "on", 0)
	if got := k.Ask(t, "pipe"); got != "262144" {
		t.Errorf("switching off has undone what was made by hand: the program has %s", got)
	}
	k.want(t, "undo --all", 0, "undone: change killed")
	if got := k.Ask(t, "pipe"); got != "65536" || len(k.changes(t)) != 0 {
		t.Errorf("the program has %s", got)
	}
}

// TestUnreadUndo: what is to be undone is, and noted, where nobody reads the answer.
func TestUnreadUndo(t *testing.T) {
	ownSwitch(t)
	k := newTuneTest(t)
	k.advised(t, "dd11ee", time.Now())
	for undo, change := range map[string]func(){
		"off": func() {
			if err := k.changeAsRun(t, "killed").Close(); err != nil {
				t.Fatal(err)
			}
		},
		"advice undo dd1": func() { k.want(t, "advice apply dd1 $P", 0) },
	} {
		k.want(t, "on", 0)
		change()
		got := shell(t, unread+"$ATTUNE_BINARY "+undo+" >&3", "")
		if size := k.Ask(t, "pipe"); got.code != 0 || size != "65536" || len(k.changes(t)) != 0 {
			t.Errorf("%s: the program has %s: %+v", undo, size, got)
		}
	}
}
