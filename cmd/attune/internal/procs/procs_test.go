// SPDX-License-Identifier: Apache-2.0

package procs

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/attune-hpc/attune/internal/testing/files"
	"github.com/attune-hpc/attune/internal/testing/targets"
)

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
