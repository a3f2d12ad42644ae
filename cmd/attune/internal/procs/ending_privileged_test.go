// SPDX-License-Identifier: Apache-2.0

//go:build privileged

package procs

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/internal/procid"
	"github.com/attune-hpc/attune/internal/testing/patience"
)

// TestEndingProcess: one that is just ending has no memory any more, as threads of the kernel,
// and is none of these.
func TestEndingProcess(t *testing.T) {
	pid := ending(t)
	_, err := Hold([]int{pid})
	if want := fmt.Sprintf("process %d: there is none, or it has ended", pid); err == nil || err.Error() != want {
		t.Errorf("ending: %v, want %s", err, want)
	}
	for _, pid := range IDs() { // a container may show none
		if stat, err := procid.ReadStat(pid); err != nil || !stat.Kernel {
			continue
		}
		if _, err := Hold([]int{pid}); err == nil || !strings.Contains(err.Error(), "it is a kernel thread") {
			t.Errorf("a thread of the kernel: %v", err)
		}
		return
	}
}

// ending returns a process that cannot become a zombie yet: the first of a namespace waits
// for the others, of which one's parent, outside, is stopped and does not take note of its end.
func ending(t *testing.T) int {
	t.Helper()
	first := exec.Command("sleep", "1000")
	first.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWPID}
	if err := first.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = first.Process.Kill(), first.Wait() })
	pid := first.Process.Pid
	parent := exec.Command("nsenter", "--target", strconv.Itoa(pid), "--pid", "sleep", "1000")
	if err := parent.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = parent.Process.Kill(), parent.Wait() })
	patience.Until(t, "the other process", func() bool {
		files, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", parent.Process.Pid))
		for _, file := range files {
			if text, err := os.ReadFile(file); err == nil && len(text) > 0 {
				return true
			}
		}
		return false
	})
	if err := parent.Process.Signal(unix.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	patience.Until(t, "its parent's stop", func() bool {
		stat, err := procid.ReadStat(parent.Process.Pid)
		return err == nil && stat.State == 'T'
	})
	if err := first.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	patience.Until(t, "the end to begin", func() bool {
		stat, err := procid.ReadStat(pid)
		return err == nil && stat.VirtualBytes == 0
	})
	if stat, err := procid.ReadStat(pid); err != nil || stat.Zombie() {
		t.Fatalf("%+v, %v", stat, err)
	}
	return pid
}
