// SPDX-License-Identifier: Apache-2.0

package admit

import (
	"os"
	"os/exec"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/controller/shm"
)

func TestLimitsOf(t *testing.T) {
	cmd := exec.Command("sh", "-c", "ulimit -v 1000000; echo; exec cat")
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := stdout.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	if got, want := limitsOf(cmd.Process.Pid), (shm.Limits{Threads: 1, Addresses: 1000000 << 10}); got != want {
		t.Errorf("limits %+v, want %+v", got, want)
	}
	_ = stdin.Close()
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
	if got := limitsOf(1 << 22); got != (shm.Limits{}) {
		t.Errorf("limits %+v of nobody", got)
	}
}

// TestLimitsOfLocked: what a process maps later may be locked as well.
func TestLimitsOfLocked(t *testing.T) {
	if limitsOf(os.Getpid()).Locked {
		t.Fatal("locked before anything was")
	}
	page := make([]byte, os.Getpagesize())
	if err := unix.Mlock(page); err != nil {
		t.Fatal(err)
	}
	defer unix.Munlock(page)
	if !limitsOf(os.Getpid()).Locked {
		t.Error("memory that is locked is not seen")
	}
}
