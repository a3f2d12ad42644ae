// SPDX-License-Identifier: Apache-2.0

package procid_test

import (
	"errors"
	"os"
	"os/exec"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/internal/procid"
)

func mustPidfd(t *testing.T, pid int) int {
	t.Helper()
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		t.Fatal(err)
	}
	return fd
}

func TestAdoptTheLiving(t *testing.T) {
	pid, end := startCat(t)
	want, err := procid.Of(pid)
	if err != nil {
		t.Fatal(err)
	}
	p, err := procid.Adopt(mustPidfd(t, pid), pid, want.StartTicks)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	if !p.Identity().SameImage(want) || !p.Alive() {
		t.Errorf("%+v, alive %v; want %+v", p.Identity(), p.Alive(), want)
	}
	end()
	if err := p.Wait(t.Context()); err != nil {
		t.Errorf("wait: %v", err)
	}
}

// TestAdoptTheDead: a process that has ended, and been reaped, is known by its
// pidfd.
func TestAdoptTheDead(t *testing.T) {
	cmd := exec.Command("sh", "-c", "read line; exit 7")
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	fd, pid := mustPidfd(t, cmd.Process.Pid), cmd.Process.Pid
	if got, err := procid.OfPidfd(fd); got != pid || err != nil {
		t.Errorf("pidfd of %d, %v; want %d", got, err, pid)
	}
	stdin.Close()
	_ = cmd.Wait() // 7
	if _, err := procid.OfPidfd(fd); !errors.Is(err, procid.ErrGone) {
		t.Errorf("pidfd of a reaped process: %v", err)
	}
	p, err := procid.Adopt(fd, pid, 5)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	if p.Alive() || p.PID() != pid {
		t.Errorf("pid %d, alive %v", p.PID(), p.Alive())
	}
	if status, ok := p.ExitStatus(); ok && unix.WaitStatus(status).ExitStatus() != 7 {
		t.Errorf("exit status %#x, want code 7", status) // known since Linux 6.15
	}
}

func TestAdoptRefuses(t *testing.T) {
	pid, _ := startCat(t)
	self := os.Getpid()
	if _, err := procid.Adopt(mustPidfd(t, self), pid, 1); !errors.Is(err, procid.ErrGone) {
		t.Errorf("another's pidfd: %v", err)
	}
	if _, err := procid.Adopt(mustPidfd(t, self), self, 1); !errors.Is(err, procid.ErrGone) {
		t.Errorf("another start: %v", err)
	}
	null, err := unix.Open("/dev/null", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := procid.Adopt(null, pid, 1); err == nil {
		t.Error("no pidfd at all")
	}
}
