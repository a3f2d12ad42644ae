// SPDX-License-Identifier: Apache-2.0

//go:build privileged

package procs

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/attune-hpc/attune/internal/testing/asuser"
	"github.com/attune-hpc/attune/internal/testing/patience"
	"github.com/attune-hpc/attune/internal/testing/silentfs"
	"github.com/attune-hpc/attune/internal/testing/targets"
)

// TestNamesOfOthers: another user gives a program the name of root's, and is not in its session.
func TestNamesOfOthers(t *testing.T) {
	dir := asuser.Folder(t)
	program, err := exec.LookPath("sleep")
	if err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(dir, "procs-test-server")
	if err := os.Symlink(program, link); err != nil {
		t.Fatal(err)
	}
	start := func(uid uint32) {
		cmd := exec.Command(link, "1000")
		cmd.Args[0] = "titled" // so that only its memory has the name
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: uid}}
		mustExecute(t, cmd)
		t.Cleanup(func() { _, _ = cmd.Process.Kill(), cmd.Wait() })
	}
	start(0)
	start(0)
	if pids, err := Named("procs-test-server"); err != nil || len(pids) != 2 {
		t.Errorf("one user's: %v, %v", pids, err)
	}
	start(65534)
	if pids, err := Named("procs-test-server"); err == nil || !strings.Contains(err.Error(), "several users") {
		t.Errorf("two users': %v, %v", pids, err)
	}
}

// TestSilentNames: a process whose arguments never answer holds up nobody who looks for another one.
func TestSilentNames(t *testing.T) {
	const user = 65534
	served := silentfs.Mount(t, user, make([]byte, 1<<20))
	served.Unread(t, user, targets.Program(t, "unread"))
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if pids, err := Named("procs-test-nobody"); err == nil {
			t.Errorf("%v", pids)
		}
		if pids, err := Named("unread"); err != nil || len(pids) == 0 {
			t.Errorf("by the name that the kernel has: %v, %v", pids, err)
		}
	}()
	patience.Closed(t, "the list of processes", ended)
}
