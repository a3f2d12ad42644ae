// SPDX-License-Identifier: Apache-2.0

//go:build privileged

package cgroup

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
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
