// SPDX-License-Identifier: Apache-2.0

package procs

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/attune-hpc/attune/internal/testing/files"
	"github.com/attune-hpc/attune/internal/testing/patience"
	"github.com/attune-hpc/attune/internal/testing/targets"
)

// mustExecute starts a command, and waits until the kernel shows what it executes: Start returns
// a moment earlier.
func mustExecute(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	patience.Until(t, "the program", func() bool {
		words, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", cmd.Process.Pid))
		return err == nil && len(words) > 0
	})
}

// TestOwnProcessThatCannotBeDumped: users are not told to be who they are.
func TestOwnProcessThatCannotBeDumped(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Skip("root may look into it")
	}
	sleep, err := exec.LookPath("sleep")
	if err != nil {
		t.Fatal(err)
	}
	unreadable := filepath.Join(t.TempDir(), "sleep") // so that the kernel lets nobody dump it
	if err := errors.Join(targets.WriteProgram(unreadable, files.Read(t, sleep)), os.Chmod(unreadable, 0o111)); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(unreadable, "1000")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = cmd.Process.Kill(), cmd.Wait() })
	if err := Permitted([]int{cmd.Process.Pid}); err == nil || !strings.Contains(err.Error(), "it cannot be dumped") {
		t.Errorf("permitted: %v", err)
	}
}
