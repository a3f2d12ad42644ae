// SPDX-License-Identifier: Apache-2.0

//go:build privileged

package cgroup

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/attune-hpc/attune/internal/procid"
	"github.com/attune-hpc/attune/internal/testing/patience"
)

// TestMade: what begins in the group is in it, and is out of it when it is removed.
func TestMade(t *testing.T) {
	m, err := Make()
	if err != nil {
		t.Fatal(err)
	}
	if m.FD() == 0 {
		t.Skip("control groups of version 2 are not mounted")
	}
	command := exec.Command("sleep", "1000")
	command.SysProcAttr = &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: m.FD()}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	if inside, err := os.ReadFile(filepath.Join(m.v2, "cgroup.procs")); err != nil || len(inside) == 0 {
		t.Errorf("in the group: %q, %v", inside, err)
	}
	m.Kill()
	if err := command.Wait(); err == nil || command.ProcessState.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
		t.Errorf("it ended with %v", command.ProcessState)
	}
	left := exec.Command("sleep", "1000")
	left.SysProcAttr = command.SysProcAttr
	if err := left.Start(); err != nil {
		t.Fatal(err)
	}
	if err := m.Remove(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(m.v2); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the group is there: %v", err)
	}
	if err := left.Process.Kill(); err != nil {
		t.Error(err)
	}
	_ = left.Wait() // killed
}

// TestRemoveOfWhatEnds: a process that is ending, and gives its memory back, cannot be moved any
// more; the group is removed when it has ended.
func TestRemoveOfWhatEnds(t *testing.T) {
	m, err := Make()
	if err != nil {
		t.Fatal(err)
	}
	if m.FD() == 0 {
		t.Skip("control groups of version 2 are not mounted")
	}
	const size = 512 << 20
	command := exec.Command("dd", "if=/dev/zero", "of=/dev/null", fmt.Sprint("bs=", size), "count=100000")
	command.SysProcAttr = &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: m.FD()}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	patience.Until(t, "the program to have its memory", func() bool {
		status, err := procid.ReadStatus(command.Process.Pid)
		return err == nil && status.Peak > size
	})
	if err := command.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := m.Remove(); err != nil {
		t.Error(err)
	}
	_ = command.Wait() // killed
}
