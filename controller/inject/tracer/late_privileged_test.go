// SPDX-License-Identifier: Apache-2.0

//go:build privileged

package tracer

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/internal/testing/targets"
)

// cgroupToFreeze puts a process in a cgroup of its own, version 2, and returns the file that
// freezes it.
func cgroupToFreeze(t *testing.T, pid int) (file string) {
	t.Helper()
	root := "/sys/fs/cgroup"
	if unified := filepath.Join(root, "unified"); dirExists(unified) {
		root = unified
	}
	dir := filepath.Join(root, fmt.Sprintf("attune-test-%d", pid))
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = os.WriteFile(filepath.Join(root, "cgroup.procs"), []byte(strconv.Itoa(pid)), 0) // it may have ended
		if err := os.Remove(dir); err != nil {
			t.Error(err)
		}
	})
	mustWrite(t, filepath.Join(dir, "cgroup.procs"), strconv.Itoa(pid))
	return filepath.Join(dir, "cgroup.freeze")
}

func dirExists(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

func mustWrite(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0); err != nil {
		t.Error(err)
	}
}

// TestFrozenWithoutLifeline: the cgroup of a borrowed thread is frozen for longer than a
// system call may take, as by docker pause. The program is right when it has thawed.
func TestFrozenWithoutLifeline(t *testing.T) {
	for _, place := range []string{"with signals blocked", "at the system call", "behind the system call"} {
		t.Run(place, func(t *testing.T) {
			target := targets.StartProgram(t, "plain")
			file := cgroupToFreeze(t, target.PID)
			var thawed chan struct{}
			freeze := func(where string) bool {
				if where == place {
					mustWrite(t, file, "1")
					thawed = make(chan struct{})
					time.AfterFunc(3*stepPatience/2, func() { mustWrite(t, file, "0"); close(thawed) })
				}
				return false
			}
			err := useOnly(t, target, computing(t, target.PID), freeze, func(b *Borrowed) error {
				if _, err := b.Syscall(unix.SYS_GETTID); Lost(err) {
					t.Errorf("lost: %v", err)
				}
				return b.GiveBack()
			})
			if err != nil {
				t.Error(err)
			}
			if thawed == nil {
				t.Fatal("it was not frozen")
			}
			<-thawed
			target.Right(t)
			target.Finish(t)
		})
	}
}
