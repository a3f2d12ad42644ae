// SPDX-License-Identifier: Apache-2.0

package procid

import (
	"errors"
	"os"
	"os/exec"
	"slices"
	"testing"

	"golang.org/x/sys/unix"
)

func TestParseStatus(t *testing.T) {
	got, err := ParseStatus("Name:\tUid: 5\nState:\tS (sleeping)\nTgid:\t8\nPid:\t4711\nPPid:\t9\nTracerPid:\t41\n" +
		"Uid:\t1\t2\t3\t4\nGid:\t5\t5\t5\t5\nNSpid:\t4711\t12\t3\nSigPnd:\t0000000000000001\nShdPnd:\t0000000000000002\n" +
		"SigBlk:\t0000000000000004\nSigIgn:\t0000000000000008\nSigCgt:\t0000000000000010\nCapPrm:\t000001ffffffffff\nCapEff:\t0000000000000020\n" +
		"VmLck:\t       8 kB\nVmHWM:\t    8724 kB\nVmRSS:\t 100 kB\n" +
		"Seccomp:\t2\nSeccomp_filters:\t3\nx86_Thread_features:\tshstk\nSome:\t\n")
	want := Status{
		State: 'S', Process: 8, Parent: 9, Tracer: 41, Inner: 3, Depth: 3, Users: IDs{1, 2, 3, 4}, Groups: IDs{5, 5, 5, 5},
		Locked: 8 << 10, Resident: 100 << 10, Peak: 8724 << 10,
		Capabilities: 0x1ffffffffff, Effective: 0x20, Pending: 1, Shared: 2, Blocked: 4, Ignored: 8, Caught: 16,
		Seccomp: 2, Filters: 3, ShadowStack: true, known: known{true, true, true},
	}
	if err != nil || got != want {
		t.Errorf("%+v, %v, want %+v", got, err, want)
	}
	if got.Users.Same() || !got.Groups.Same() {
		t.Errorf("users %v, groups %v", got.Users, got.Groups)
	}
}

func TestParseStatusRefuses(t *testing.T) {
	for name, content := range map[string]string{
		"no state": "State:\n", "no number": "Tgid:\tx\n", "no inner id": "NSpid:\n", "short ids": "Uid:\t1001\n",
		"words for ids": "Gid:\ta\ta\ta\ta\n", "no set": "SigBlk:\tx\n", "two sets": "SigIgn:\t1 2\n", "cut off": "Uid:",
		"no size": "VmHWM:\t kB\n", "no unit": "VmRSS:\t5\n", "more than there is": "VmLck:\t18014398509481984 kB\n",
	} {
		if got, err := ParseStatus(content); !errors.Is(err, ErrMalformed) {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
}

// TestStatusIsWhole: missing ids are nobody's, and not root's.
func TestStatusIsWhole(t *testing.T) {
	s, err := ParseStatus("Name:\tx\nUid:\t0\t0\t0\t0\nGid:\t0\t0\t0\t0\n")
	if err != nil {
		t.Fatal(err)
	}
	if err := s.whole(); !errors.Is(err, ErrMalformed) {
		t.Errorf("without capabilities: %v", err)
	}
}

func TestSignals(t *testing.T) {
	set := Signals(0).With(unix.SIGTERM).With(64)
	if !set.Has(unix.SIGTERM) || !set.Has(64) || set.Has(unix.SIGINT) || set.Has(0) || set.Has(65) {
		t.Errorf("set %#x", set)
	}
	if got := set.List(); !slices.Equal(got, []unix.Signal{unix.SIGTERM, 64}) {
		t.Errorf("signals %v", got)
	}
	if rest := set.Without(64); rest != Signals(0).With(unix.SIGTERM) {
		t.Errorf("without one %#x", rest)
	}
}

// TestDiscards: a signal comes to nothing if it is ignored, or has no handler and does
// nothing by default.
func TestDiscards(t *testing.T) {
	for name, row := range map[string]struct {
		status Status
		signal unix.Signal
		want   bool
	}{
		"default":             {Status{}, unix.SIGUSR1, false},
		"caught":              {Status{Caught: Signals(0).With(unix.SIGUSR1)}, unix.SIGUSR1, false},
		"ignored":             {Status{Ignored: Signals(0).With(unix.SIGUSR1)}, unix.SIGUSR1, true},
		"nothing by default":  {Status{}, unix.SIGCHLD, true},
		"default, but caught": {Status{Caught: Signals(0).With(unix.SIGCHLD)}, unix.SIGCHLD, false},
	} {
		if got := row.status.Discards(row.signal); got != row.want {
			t.Errorf("%s: %v, want %v", name, got, row.want)
		}
	}
}

func TestReadStatus(t *testing.T) {
	self := os.Getpid()
	s, err := ReadStatus(self)
	if err != nil || s.Process != self || s.Parent != os.Getppid() || int(s.Users.Real) != os.Getuid() {
		t.Errorf("%+v, %v", s, err)
	}
	if id, err := InnerID(self, self); err != nil || id != self {
		t.Errorf("own id %d, %v", id, err)
	}
	for inner, want := range map[int]int{self: self, unix.Gettid(): unix.Gettid(), 1 << 22: 0} {
		if id, err := OuterID(self, inner); err != nil || id != want {
			t.Errorf("thread %d is %d, %v, want %d", inner, id, err, want)
		}
	}
	if nested, err := Nested(self); err != nil || nested {
		t.Errorf("nested in its own namespace: %t, %v", nested, err)
	}
	if id, err := UserID(self); err != nil || int(id) != os.Getuid() {
		t.Errorf("own user %d, %v", id, err)
	}
	cmd := exec.Command("true")
	if err := cmd.Run(); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadThread(cmd.Process.Pid, cmd.Process.Pid); !errors.Is(err, ErrGone) {
		t.Errorf("of an ended process: %v", err)
	}
}
