// SPDX-License-Identifier: Apache-2.0

//go:build privileged

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/cilium/ebpf/features"
	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/internal/procid"
	"github.com/attune-hpc/attune/internal/testing/files"
	"github.com/attune-hpc/attune/internal/testing/patience"
	"github.com/attune-hpc/attune/internal/testing/targets"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// Whatever becomes of the process of a session: its changes are undone, that is said
// once, it is not tried again, and neither attuned nor the session beside it suffers.
func TestLostSession(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		signal unix.Signal
		why    string
	}{
		{"killed", unix.SIGKILL, "killed"},
		{"stopped", unix.SIGSTOP, "not answered"},
		{"ended by Go's runtime", unix.SIGABRT, "SIGABRT"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			testLost(t, tt.signal, tt.why)
		})
	}
}

// tuned is a worker whose knob is changed.
type tuned struct {
	*connection

	target *targets.Target
	handle uint64
}

// mustTune has a worker of its own registration changed.
func mustTune(t *testing.T, s *site, a *scripted, id string) *tuned {
	t.Helper()
	return mustBeChanged(t, s, a, id, func(*attunev1.Change) {})
}

// mustBeChanged is mustTune by a change that was prepared.
func mustBeChanged(t *testing.T, s *site, a *scripted, id string, prepare func(*attunev1.Change)) *tuned {
	t.Helper()
	w := &tuned{connection: a.reset()}
	program := s.worker(id)
	w.target = targets.Start(t, program)
	s.register(id, program, "tune")
	w.handle = patience.Receive(t, "the process", w.processes).GetHandle()
	change := setKnob(id, w.handle)
	prepare(change.GetApply().GetChanges()[0])
	w.requests <- change
	checkChanged(t, w.connection, w.target)
	return w
}

func testLost(t *testing.T, signal unix.Signal, why string) {
	s := mustSiteOnly(t)
	a := &scripted{points: []*attunev1.PointWant{workPoint()}}
	serveScript(t, a, s.path("a.sock"))
	daemon := s.attuned()
	one := mustTune(t, s, a, "one")
	other := mustTune(t, s, a, "other")
	pid := mustHolder(t, daemon.Process.Pid, one.target.PID)
	if err := unix.Kill(pid, signal); err != nil {
		t.Fatal(err)
	}
	const given = "session is given up"
	patience.Until(t, "the session to be given up", func() bool { return s.said(given) == 1 })
	if knob := one.target.Ask(t, "knob"); knob != knobBefore {
		t.Errorf("the knob is %s, want it as it was", knob)
	}
	if _, status := s.get("/v1/status"); !strings.Contains(status, why) {
		t.Errorf("the record says nothing of %q: %s", why, status)
	}
	if knob := other.target.Ask(t, "knob"); knob != knobAfter {
		t.Errorf("the other session's knob is %s, want it changed still", knob)
	}
	other.requests <- &attunev1.ManageResponse{RequestId: "u", Request: &attunev1.ManageResponse_Undo{
		Undo: &attunev1.UndoChanges{ChangeIds: []string{"other"}},
	}}
	if result := patience.Receive(t, "the other session's answer", other.results); result.GetOutcome() != attunev1.Outcome_OUTCOME_UNDONE {
		t.Errorf("undo in the other session: %v", result)
	}
	mustTune(t, s, a, "third") // sessions begin as before
	if n := s.said(given); n != 1 {
		t.Errorf("it is said %d times that a session is given up", n)
	}
	if n := s.said("session begins here"); n != 3 {
		t.Errorf("%d sessions have begun, want 3: the one that was given up is tried again", n)
	}
	s.stop(daemon)
	checkUnharmed(t, one.target)
	checkUnharmed(t, other.target)
}

// mustHolder finds the process of a session by the descriptor that it has of one of
// its processes.
func mustHolder(t *testing.T, daemon, pid int) int {
	t.Helper()
	for _, child := range sessionsOf(t, daemon) {
		paths, err := filepath.Glob(fmt.Sprintf("/proc/%d/fdinfo/*", child))
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range paths {
			text, _ := os.ReadFile(path) // it may just have been closed
			if slices.Contains(strings.Fields(string(text)), "Pid:") && strings.Contains(string(text), fmt.Sprintf("Pid:\t%d\n", pid)) {
				return child
			}
		}
	}
	t.Fatalf("no process of attuned holds %d", pid)
	return 0
}

// sessionsOf lists attuned's children.
func sessionsOf(t *testing.T, daemon int) (children []int) {
	t.Helper()
	paths, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		pid, _ := strconv.Atoi(filepath.Base(path))
		if stat, err := procid.ReadStat(pid); err == nil && stat.ParentPID == daemon {
			children = append(children, pid)
		}
	}
	return children
}

// The process of a session has the rights that controllers need and no others, cannot
// get more, and ends with attuned.
func TestRightsOfASession(t *testing.T) {
	s := mustSiteOnly(t)
	a := &scripted{}
	serveScript(t, a, s.path("a.sock"))
	daemon := s.attuned()
	w := mustTune(t, s, a, "one")
	pid := mustHolder(t, daemon.Process.Pid, w.target.PID)
	status := files.Read(t, fmt.Sprintf("/proc/%d/status", pid))
	own := files.Read(t, fmt.Sprintf("/proc/%d/status", daemon.Process.Pid))
	_, text, _ := strings.Cut(string(own), "CapPrm:\t")
	all, err := strconv.ParseUint(text[:16], 16, 64)
	if err != nil {
		t.Fatal(err)
	}
	needed := uint64(0x000001c0118840e6)          // see controller/child
	if features.HaveBPFLinkUprobeMulti() != nil { // then the kernel places no uprobes without it
		needed |= 1 << unix.CAP_SYS_ADMIN
	}
	for _, line := range []string{
		fmt.Sprintf("CapPrm:\t%016x", all&needed), fmt.Sprintf("CapEff:\t%016x", all&needed),
		"CapInh:\t0000000000000000", "CapAmb:\t0000000000000000", "NoNewPrivs:\t1", "Seccomp:\t2",
	} {
		if !strings.Contains(string(status), line+"\n") {
			t.Errorf("status has no %q:\n%s", line, status)
		}
	}
	limits := files.Read(t, fmt.Sprintf("/proc/%d/limits", pid))
	if words := strings.Join(strings.Fields(string(limits)), " "); !strings.Contains(words, "Max core file size 0 0") ||
		!strings.Contains(words, "Max data size 2147483648 2147483648") {
		t.Errorf("limits:\n%s", limits)
	}
	if err := daemon.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = daemon.Wait() // killed
	patience.Until(t, "the session's process to end", func() bool {
		stat, err := procid.ReadStat(pid)
		return err != nil || stat.Zombie()
	})
}
