// SPDX-License-Identifier: Apache-2.0

package change

import (
	"errors"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/attune-hpc/attune/controller/actuate"
	"github.com/attune-hpc/attune/controller/actuate/access"
	"github.com/attune-hpc/attune/controller/actuate/actuatetest"
	"github.com/attune-hpc/attune/internal/clock"
	"github.com/attune-hpc/attune/internal/testing/patience"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// errBusy is why something cannot be undone just then.
var errBusy = errors.New("the device is busy")

// busy are changes of which some cannot be undone just then.
type busy struct {
	*Changes
	names []string // of those
	dir   string   // of journals
	kinds actuate.Kinds

	takeBack   func(name string)        // is called first
	otherValue func(name string) string // what somebody else has changed
	run        error                    // why no more can be made
}

// mustChange makes changes with these ids in this process.
func mustChange(t *testing.T, ids ...string) *busy {
	t.Helper()
	b := &busy{dir: t.TempDir(), takeBack: func(string) {}, otherValue: func(string) string { return "" }}
	feigned := &actuatetest.Feigned{
		Run:        func() error { return b.run },
		OtherValue: func(name string) string { return b.otherValue(name) },
		TakeBack: func(name string) error {
			b.takeBack(name)
			if slices.Contains(b.names, name) {
				return errBusy
			}
			return nil
		},
	}
	b.kinds = feigned.Kinds()
	journal := actuatetest.MustJournal(t, b.dir)
	b.Changes = &Changes{
		options: Options{
			StateDir: b.dir, Context: t.Context(), Log: slog.New(slog.DiscardHandler),
			Answered: func(*attunev1.ActionResult) {}, Answer: func(*attunev1.ManageRequest) {},
		},
		kinds: b.kinds, journal: journal, leases: newLeases(time.Hour),
		actuator: actuate.New(actuate.Options{Journal: journal, Kinds: b.kinds}),
	}
	b.change(t, actuatetest.MustProcess(t, os.Getpid()), ids...)
	return b
}

// change makes changes with these ids in a process.
func (b *busy) change(t *testing.T, in access.Process, ids ...string) {
	t.Helper()
	for _, id := range ids {
		actuatetest.MustApply(t, b.actuator, in, &attunev1.Change{Id: id, Knob: id, Action: actuatetest.Setting(id, 1)})
	}
}

// mustRestore undoes what the controller has left when it is gone, and returns the ids.
func (b *busy) mustRestore(t *testing.T) (ids []string) {
	t.Helper()
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	restored, err := b.kinds.Restore(b.dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range restored {
		ids = append(ids, r.Change)
	}
	return ids
}

// What cannot be undone at the end is said, and left to whoever restores.
func TestUndoAll(t *testing.T) {
	b := mustChange(t, "busy", "undone")
	b.names = []string{"busy"}
	if err := b.UndoAll(t.Context()); err == nil || !strings.Contains(err.Error(), errBusy.Error()) || strings.Contains(err.Error(), "undone") {
		t.Errorf("undo all: %v, want why busy stays, and no more", err)
	}
	b.names = nil
	if ids := b.mustRestore(t); !slices.Equal(ids, []string{"busy"}) {
		t.Errorf("restored %v", ids)
	}
}

// So is it where a controller leaves what is proven good to the next.
func TestHold(t *testing.T) {
	b := mustChange(t, "held", "busy")
	b.names = []string{"busy"}
	b.leases.take("held", time.Hour, time.Now())
	held, err := b.Hold(t.Context(), clock.SinceBoot()+actuate.MaxHold)
	if held != 1 || err == nil || !strings.Contains(err.Error(), errBusy.Error()) || strings.Contains(err.Error(), "change held") {
		t.Errorf("%d held, %v, want one, and why busy stays", held, err)
	}
	b.names = nil
	if ids := b.mustRestore(t); !slices.Equal(ids, []string{"busy"}) {
		t.Errorf("restored %v", ids)
	}
}

// A change that somebody else has changed and that cannot be taken back just then is tried again
// after its lease, however often it is looked at. The Analyzer hears of it when it is undone.
func TestYieldedLater(t *testing.T) {
	b := mustChange(t, "mixed")
	var undoing sync.WaitGroup
	b.options.Go = undoing.Go
	b.leases = newLeases(10 * time.Second)
	var answers []*attunev1.ActionResult
	b.options.Answered = func(result *attunev1.ActionResult) { answers = append(answers, result) }
	tries := 0
	b.takeBack = func(string) { tries++ }
	b.names = []string{"mixed"}
	b.otherValue = func(string) string { return "nice of thread 7 is 3, not 5" }
	now := time.Now()
	b.leases.add("mixed", 0, b.Connection(), now)
	for second := range 12 {
		if second == 11 {
			b.names = nil
		}
		b.Look(now.Add(time.Duration(second) * time.Second))
		undoing.Wait()
		if second < 11 && (tries != 1 || len(answers) > 0) {
			t.Fatalf("after %d s: tried %d times, answered %v", second, tries, answers)
		}
	}
	if tries != 2 || len(answers) != 1 || answers[0].GetOutcome() != attunev1.Outcome_OUTCOME_OVERRIDDEN || answers[0].GetReason() != b.otherValue("mixed") {
		t.Errorf("tried %d times, answered %v", tries, answers)
	}
}

// While something is being changed in one process, leases of changes in others end in time:
// also those that are to be undone after one of the same look there.
func TestLeaseEndsBesideABusyProcess(t *testing.T) {
	b := mustChange(t, "abandoned")
	process := actuatetest.MustProcess(t, os.Getpid())
	b.change(t, process, "stays", "late")
	var undoing sync.WaitGroup
	b.options.Go = undoing.Go
	undone := make(chan string, 2)
	b.takeBack = func(name string) { undone <- name }
	process.Lock()
	now := time.Now()
	b.leases.add("abandoned", time.Second, 0, now)
	b.leases.add("stays", time.Minute, 0, now)
	b.leases.add("late", time.Second, 0, now)
	looked := make(chan struct{})
	go func() {
		defer close(looked)
		b.Look(now.Add(2 * time.Second))
	}()
	patience.Closed(t, "a look at the changes", looked)
	if got := patience.Receive(t, "a change that is undone", undone); got != "abandoned" {
		t.Errorf("undone: %s", got)
	}
	process.Unlock()
	undoing.Wait()
	if left := b.InForce(); !slices.Equal(left, []string{"stays"}) {
		t.Errorf("in force: %v", left)
	}
}

// While something is being changed in one process, what is to be undone in others is: at
// the end, when some changes are kept, and when the Analyzer asks.
func TestUndoBesideABusyProcess(t *testing.T) {
	tests := map[string]func(*busy) error{
		"the end":  func(b *busy) error { return b.UndoAll(t.Context()) },
		"the next": func(b *busy) error { _, err := b.Hold(t.Context(), clock.SinceBoot()+actuate.MaxHold); return err },
		"some kept": func(b *busy) error {
			_, err := b.KeepOnly(t.Context(), nil, nil)
			return err
		},
		"asked for": func(b *busy) error { b.Undo("request", []string{"other", "waits"}); return nil },
	}
	for name, undo := range tests {
		t.Run(name, func(t *testing.T) {
			b := mustChange(t, "other")
			process := actuatetest.MustProcess(t, os.Getpid())
			b.change(t, process, "waits")
			undone := make(chan string, 2)
			b.takeBack = func(name string) { undone <- name }
			process.Lock()
			ended := make(chan error, 1)
			go func() { ended <- undo(b) }()
			if got := patience.Receive(t, "a change that is undone", undone); got != "other" {
				t.Errorf("undone: %s", got)
			}
			process.Unlock()
			if err := patience.Receive(t, "the end", ended); err != nil {
				t.Error(err)
			}
			if left := b.InForce(); len(left) > 0 {
				t.Errorf("in force: %v", left)
			}
		})
	}
}
