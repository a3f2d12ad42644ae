// SPDX-License-Identifier: Apache-2.0

//go:build privileged

package main

import (
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/internal/procid"
	"github.com/attune-hpc/attune/internal/testing/files"
	"github.com/attune-hpc/attune/internal/testing/patience"
	"github.com/attune-hpc/attune/internal/testing/targets"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// restarted is a site whose attuned has a session with a change in each of two processes,
// of which one is proven good.
type restarted struct {
	*site

	analyzer    *scripted
	daemon      *exec.Cmd
	good, tried *targets.Target
}

// mostHold is as long as changes can be held: for tests in which the next attuned comes in time,
// however crowded the machine is.
const mostHold = 2 * time.Minute

// mustHaveProven starts it. hold is for how long changes are held.
func mustHaveProven(t *testing.T, hold time.Duration) *restarted {
	t.Helper()
	r := &restarted{site: mustSiteOnly(t), analyzer: &scripted{}}
	serveScript(t, r.analyzer, r.path("a.sock"))
	program := r.worker("worker")
	r.register("r1", program, "tune")
	c := r.analyzer.reset()
	r.start(hold)
	change := func(id string) *targets.Target {
		target := targets.Start(t, program)
		process := patience.Receive(t, "the process", c.processes)
		for int(process.GetIdentity().GetPid()) != target.PID { // the other one is told again
			process = patience.Receive(t, "the process", c.processes)
		}
		request := setKnob(id, process.GetHandle())
		request.GetApply().GetChanges()[0].LeaseNanos = int64(time.Hour)
		c.requests <- request
		checkChanged(t, c, target)
		return target
	}
	r.good, r.tried = change("good"), change("tried")
	c.requests <- &attunev1.ManageResponse{Request: &attunev1.ManageResponse_Renew{Renew: &attunev1.RenewLease{
		Proven: &attunev1.ProvenChanges{Changes: []string{"good"}, LeaseNanos: int64(time.Hour)},
	}}}
	c.undo("none") // when it answers it has heard what was said before
	patience.Receive(t, "an answer", c.results)
	return r
}

func (r *restarted) start(hold time.Duration) {
	r.t.Helper()
	r.daemon = r.attuned("--hold-time", hold.String())
}

// await waits until attuned serves.
func (r *restarted) await() {
	r.t.Helper()
	patience.Until(r.t, "attuned to serve", func() bool { code, _ := r.get("/readyz"); return code == http.StatusOK })
}

// undo asks for a change to be undone.
func (c *connection) undo(id string) {
	c.requests <- &attunev1.ManageResponse{RequestId: "u", Request: &attunev1.ManageResponse_Undo{Undo: &attunev1.UndoChanges{ChangeIds: []string{id}}}}
}

// leave ends attuned as the first half of a restart.
func (r *restarted) leave() {
	r.t.Helper()
	if err := r.daemon.Process.Signal(unix.SIGUSR1); err != nil {
		r.t.Fatal(err)
	}
	r.stop(r.daemon)
}

// guards lists the processes that guard what is held in this site. The arguments of others
// are not read: another test's process may not answer.
func (r *restarted) guards() (guards []int) {
	r.t.Helper()
	pids, err := procid.List()
	if err != nil {
		r.t.Fatal(err)
	}
	for _, pid := range pids {
		stat, err := procid.ReadStat(pid)
		if err != nil || stat.Comm != "attuned-guard" { // it may have ended
			continue
		}
		line, _ := os.ReadFile(procid.Path(pid, "cmdline"))
		if strings.Contains(string(line), "\x00guard\x00"+r.path("state")) {
			guards = append(guards, pid)
		}
	}
	return guards
}

// knobs checks the values that are in force.
func (r *restarted) knobs(when, good, tried string) {
	r.t.Helper()
	if got := r.good.Ask(r.t, "knob"); got != good {
		r.t.Errorf("%s the knob that was proven good is %s, want %s", when, got, good)
	}
	if got := r.tried.Ask(r.t, "knob"); got != tried {
		r.t.Errorf("%s the knob on trial is %s, want %s", when, got, tried)
	}
}

// end stops attuned, which undoes everything, and lets the programs end.
func (r *restarted) end() {
	r.t.Helper()
	r.await()
	r.stop(r.daemon)
	r.knobs("after the end", knobBefore, knobBefore)
	patience.Until(r.t, "the guards to end", func() bool { return len(r.guards()) == 0 })
	if left, err := os.ReadDir(r.path("state/journals")); err != nil || len(left) > 0 {
		r.t.Errorf("journals %v, %v", left, err)
	}
	checkUnharmed(r.t, r.good)
	checkUnharmed(r.t, r.tried)
}

// A restart leaves what is proven good in force, and nothing else; the next attuned takes
// it over, tells the Analyzer, shows it, and can undo it.
func TestRestartKeepsProvenChanges(t *testing.T) {
	t.Parallel()
	r := mustHaveProven(t, mostHold)
	r.leave()
	r.knobs("between", knobAfter, knobBefore)
	c := r.analyzer.reset()
	r.start(mostHold)
	if id := patience.Receive(t, "a change that is taken over", c.taken); id != "good" {
		t.Errorf("taken over: %s", id)
	}
	r.knobs("when it was taken over", knobAfter, knobBefore)
	patience.Until(t, "it to be shown", func() bool { return r.changed(0)[r.good.PID] == "r1 good 7 8" })
	patience.Until(t, "the guard to end", func() bool { return len(r.guards()) == 0 })
	c.undo("good")
	patience.Until(t, "the change to be undone", func() bool { return r.good.Ask(t, "knob") == knobBefore })
	r.end()
}

// It can be restarted again and again; a plain stop undoes what was taken over.
func TestRestartTwice(t *testing.T) {
	t.Parallel()
	r := mustHaveProven(t, mostHold)
	for range 2 {
		r.leave()
		c := r.analyzer.reset()
		r.start(mostHold)
		patience.Receive(t, "a change that is taken over", c.taken)
		c.requests <- &attunev1.ManageResponse{Request: &attunev1.ManageResponse_Renew{Renew: &attunev1.RenewLease{Changes: []string{"good"}}}}
		r.knobs("after a restart", knobAfter, knobBefore)
	}
	r.end()
}

// Whoever does not come, or is killed on the way: the old value is back at the time that
// was set, or with the next start.
func TestHeldChangesAreUndone(t *testing.T) {
	t.Parallel()
	killed := func(t *testing.T, pids ...int) {
		t.Helper()
		if len(pids) == 0 {
			t.Error("nobody is there to be killed")
		}
		for _, pid := range pids {
			if err := unix.Kill(pid, unix.SIGKILL); err != nil {
				t.Error(err)
			}
		}
		patience.Until(t, "the killed to be gone", func() bool {
			for _, pid := range pids {
				if stat, err := procid.ReadStat(pid); err == nil && !stat.Zombie() {
					return false
				}
			}
			return true
		})
	}
	undone := func(t *testing.T, r *restarted) {
		t.Helper()
		patience.Until(t, "the old value", func() bool { return r.good.Ask(t, "knob") == knobBefore })
	}
	const (
		hold = 5 * time.Second // of what is not to be taken over before
		late = 30 * time.Second
	)
	for _, tt := range []struct {
		name string
		hold time.Duration
		then func(t *testing.T, r *restarted)
	}{
		{"nobody", hold, func(t *testing.T, r *restarted) {
			undone(t, r)
			r.start(hold)
		}},
		{"late", late, func(t *testing.T, r *restarted) {
			killed(t, r.guards()...) // before the time is up
			time.Sleep(late)
			r.start(hold)
			undone(t, r)
		}},
		{"killed", hold, func(t *testing.T, r *restarted) {
			r.start(hold)
			killed(t, r.daemon.Process.Pid)
			_ = r.daemon.Wait()
			undone(t, r)
			r.start(hold)
		}},
		{"heir killed", mostHold, func(t *testing.T, r *restarted) {
			c := r.analyzer.reset()
			r.start(mostHold)
			patience.Receive(t, "a change that is taken over", c.taken)
			killed(t, r.daemon.Process.Pid)
			_ = r.daemon.Wait()
			r.start(hold)
			undone(t, r)
		}},
		{"stopped", hold, func(t *testing.T, r *restarted) {
			r.start(hold)
			r.await()
			r.stop(r.daemon)
			undone(t, r)
			r.start(hold)
		}},
		{"off", hold, func(t *testing.T, r *restarted) {
			files.Write(t, r.path("off"), "", 0o600)
			r.start(hold)
			undone(t, r)
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r := mustHaveProven(t, tt.hold)
			r.leave()
			tt.then(t, r)
			r.end()
		})
	}
}

// An image that another one has replaced has nothing that could be taken over.
func TestHeldProcessIsGone(t *testing.T) {
	t.Parallel()
	r := mustHaveProven(t, mostHold)
	r.leave()
	checkUnharmed(t, r.good)
	r.start(mostHold)
	r.good = targets.Start(t, r.path("worker"))
	patience.Until(t, "the guard to end", func() bool { return len(r.guards()) == 0 })
	r.end()
}
