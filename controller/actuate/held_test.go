// SPDX-License-Identifier: Apache-2.0

package actuate_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/attune-hpc/attune/controller/actuate"
	"github.com/attune-hpc/attune/controller/actuate/access"
	"github.com/attune-hpc/attune/controller/actuate/actuatetest"
	"github.com/attune-hpc/attune/internal/clock"
	"github.com/attune-hpc/attune/internal/procid"
	"github.com/attune-hpc/attune/internal/testing/files"
	"github.com/attune-hpc/attune/internal/testing/patience"
	"github.com/attune-hpc/attune/internal/testing/targets"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// heirs is a program of which one controller has changed a variable and a setting of the
// system, and left both to the next.
type heirs struct {
	t       *testing.T
	dir     string
	target  *targets.Target
	process access.Process
	before  string // the variable
	changed string
}

func mustHold(t *testing.T, until time.Duration, leased ...string) *heirs {
	t.Helper()
	h := &heirs{t: t, dir: t.TempDir(), target: targets.Start(t, targets.Build(t, "testdata/variables.c"))}
	h.process, h.before = actuatetest.MustProcess(t, h.target.PID), h.target.Ask(t, "flag")
	a, journal := h.controller()
	actuatetest.MustApply(t, a, h.process, set("flag", 1, actuatetest.Truth(true), nil))
	actuatetest.MustApply(t, a, h.process, &attunev1.Change{Id: "limit", Knob: "limit.nofile", Action: &attunev1.Action{
		Kind: &attunev1.Action_System{System: &attunev1.SystemSetting{Name: "limit.nofile", Value: access.TextValue("200")}},
	}})
	h.changed = h.target.Ask(t, "flag")
	leases := map[string]time.Duration{}
	for _, id := range leased {
		leases[id] = time.Minute
	}
	a.Stop()
	made := a.Applied()
	var undone []string
	held, err := actuate.Hold(t.Context(), a, leases, until, func(r *attunev1.ActionResult) { undone = append(undone, r.GetChangeId()) })
	slices.Sort(held)
	if err != nil || !slices.Equal(held, leased) || len(undone) != len(made)-len(held) || len(a.Applied()) != 0 {
		t.Fatalf("held %v and undone %v of %v, %v; in force %v", held, undone, made, err, a.Applied())
	}
	if err := journal.Close(); err != nil {
		t.Fatal(err)
	}
	return h
}

// controller is one with a journal in the directory.
func (h *heirs) controller() (*actuate.Actuator, *actuate.Journal) {
	journal := actuatetest.MustJournal(h.t, h.dir)
	return actuate.New(actuate.Options{Journal: journal, Kinds: all}), journal
}

// takeOver has another controller take over what it may.
func (h *heirs) takeOver(a *actuate.Actuator, process access.Process, untouched string) ([]actuate.TakenOver, error) {
	find := func(identity procid.Identity) access.Process {
		if process == nil || identity.PID != process.PID() {
			return nil
		}
		return process
	}
	return actuate.TakeOver(a, h.dir, find, func(access.Process) string { return untouched })
}

func (h *heirs) is(want string) {
	h.t.Helper()
	if got := h.target.Ask(h.t, "flag"); got != want {
		h.t.Errorf("the program says %s, want %s", got, want)
	}
}

// left counts the journals.
func (h *heirs) left() int {
	paths, err := filepath.Glob(filepath.Join(h.dir, "*.journal"))
	if err != nil {
		h.t.Fatal(err)
	}
	return len(paths)
}

const soon = time.Minute

// What has a lease stays and is taken over with it; the rest is undone.
func TestHold(t *testing.T) {
	h := mustHold(t, clock.SinceBoot()+soon, "c-flag", "limit")
	if restored, err := all.Restore(h.dir); err != nil || len(restored) != 0 {
		t.Errorf("restored %v, %v", restored, err)
	}
	if holds, err := all.Holds(h.dir); err != nil || !holds {
		t.Errorf("holds %v, %v", holds, err)
	}
	h.is(h.changed)
	a, journal := h.controller()
	if taken, err := h.takeOver(a, h.process, ""); err != nil || len(taken) != 2 || taken[0].Lease != time.Minute {
		t.Errorf("taken over %v, %v", taken, err)
	}
	if in := a.InForce(); len(in) != 2 || in[0].ID != "c-flag" || !strings.HasPrefix(in[1].New, "200") {
		t.Errorf("in force %+v", in)
	}
	if h.left() != 1 { // its own
		t.Errorf("%d journals", h.left())
	}
	for _, id := range a.Applied() {
		if result := a.Undo(t.Context(), id); result.GetOutcome() != attunev1.Outcome_OUTCOME_UNDONE {
			t.Errorf("undo: %v", result)
		}
	}
	h.is(h.before)
	if err := journal.Close(); err != nil || h.left() != 0 {
		t.Errorf("%v, %d journals", err, h.left())
	}
}

// What is not taken over is undone: at its time, or when somebody asks for it.
func TestHeldIsRestored(t *testing.T) {
	h := mustHold(t, clock.SinceBoot()+soon, "c-flag")
	if restored, err := all.RestoreHeld(h.dir); err != nil || len(restored) != 1 || restored[0].Err != nil {
		t.Errorf("restored %v, %v", restored, err)
	}
	h.is(h.before)
	h = mustHold(t, clock.SinceBoot()+time.Hour, "c-flag") // as nobody may
	if restored, err := all.Restore(h.dir); err != nil || len(restored) != 1 || restored[0].Err != nil {
		t.Errorf("restored of what is held for too long: %v, %v", restored, err)
	}
	h.is(h.before)
	h = mustHold(t, clock.SinceBoot(), "c-flag")
	a, journal := h.controller()
	defer journal.Close()
	if taken, err := h.takeOver(a, h.process, ""); err != nil || len(taken) != 0 {
		t.Errorf("taken over after its time: %v, %v", taken, err)
	}
	if restored, err := all.Restore(h.dir); err != nil || len(restored) != 1 {
		t.Errorf("restored %v, %v", restored, err)
	}
	h.is(h.before)
}

// A process in which something is being changed is taken over at a later call.
func TestTakeOverWaitsForNoProcess(t *testing.T) {
	h := mustHold(t, clock.SinceBoot()+soon, "c-flag")
	a, journal := h.controller()
	defer journal.Close()
	h.process.Lock()
	called := make(chan struct{})
	go func() {
		defer close(called)
		if taken, err := h.takeOver(a, h.process, ""); err != nil || len(taken) != 0 {
			t.Errorf("taken over: %v, %v", taken, err)
		}
	}()
	patience.Closed(t, "a call that returns", called)
	h.process.Unlock()
	if taken, err := h.takeOver(a, h.process, ""); err != nil || len(taken) != 1 {
		t.Errorf("taken over later: %v, %v", taken, err)
	}
}

// What a journal says is believed of the controller's own processes alone, and where it is
// true.
func TestTakeOverIsChecked(t *testing.T) {
	for name, tt := range map[string]struct {
		process   func(h *heirs) access.Process
		untouched string
		forge     func(line string) string
		want      func(h *heirs) string
		held      bool // still, for somebody else
		fails     bool // which is said
	}{
		"of another controller": {process: func(*heirs) access.Process { return nil }, want: (*heirs).asChanged, held: true},
		"of an earlier process of that pid": {process: func(h *heirs) access.Process {
			identity := h.process.Identity()
			identity.StartTicks++
			return access.ProcessOf(identity)
		}, want: (*heirs).asChanged, held: true},
		"of an earlier image":          {forge: replaced(`"ExeInode":`, `"ExeInode":1`), want: (*heirs).asChanged, fails: true},
		"forbidden by now":             {untouched: "the policy says so", want: (*heirs).asBefore},
		"with a value that is another": {forge: replaced(`"new":"AQ==`, `"new":"Ag==`), want: (*heirs).asChanged},
		"without a way back":           {forge: replaced(`"words":`, `"wards":`), want: (*heirs).asChanged, held: true, fails: true},
	} {
		t.Run(name, func(t *testing.T) {
			h := mustHold(t, clock.SinceBoot()+soon, "c-flag")
			if tt.forge != nil {
				h.rewrite(tt.forge)
			}
			process := h.process
			if tt.process != nil {
				process = tt.process(h)
			}
			a, journal := h.controller()
			defer journal.Close()
			taken, err := h.takeOver(a, process, tt.untouched)
			if len(taken) != 0 || len(a.Applied()) != 0 || (err != nil) != tt.fails {
				t.Errorf("taken over: %v, %v, in force %v", taken, err, a.Applied())
			}
			h.is(tt.want(h))
			if holds, err := all.Holds(h.dir); err != nil || tt.held && !holds {
				t.Errorf("holds %v, %v", holds, err)
			}
		})
	}
}

func (h *heirs) asBefore() string  { return h.before }
func (h *heirs) asChanged() string { return h.changed }

// replaced replaces a text in a line, which has to have it.
func replaced(old, by string) func(string) string {
	return func(line string) string { return strings.ReplaceAll(line, old, by) }
}

// rewrite changes what the journal says.
func (h *heirs) rewrite(change func(string) string) {
	h.t.Helper()
	paths, err := filepath.Glob(filepath.Join(h.dir, "*.journal"))
	if err != nil || len(paths) != 1 {
		h.t.Fatal(paths, err)
	}
	text := files.Read(h.t, paths[0])
	if forged := change(string(text)); forged != string(text) {
		err = os.WriteFile(paths[0], []byte(forged), 0o600)
	} else {
		h.t.Errorf("the journal is not as it was thought:\n%s", text)
	}
	if err != nil {
		h.t.Fatal(err)
	}
}
