// SPDX-License-Identifier: Apache-2.0

//go:build privileged

package procid_test

import (
	"os/exec"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/internal/confine"
)

// The status of a zombie that this process may not look into is not 0: the kernel does not
// tell it.
func TestStatusOfAnothersZombie(t *testing.T) {
	cmd := exec.Command("sh", "-c", "read line; exit 7")
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: confine.Nobody, Gid: confine.Nobody}}
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p := mustOpen(t, cmd.Process.Pid)
	stdin.Close()
	if err := p.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	confine.Apart(func(err error) {
		if status, ok := p.ExitStatus(); err != nil || ok {
			t.Errorf("without rights: %v, exit status %#x, want none", err, status)
		}
	}, confine.Rights{})
	if status, ok := p.ExitStatus(); !ok || unix.WaitStatus(status).ExitStatus() != 7 {
		t.Errorf("with rights: exit status %#x, %v, want code 7", status, ok)
	}
	if err := cmd.Wait(); err == nil {
		t.Error("the process was reaped by somebody else")
	}
}
