// SPDX-License-Identifier: Apache-2.0

package procid

import (
	"errors"
	"os"
	"os/exec"
	"testing"

	"golang.org/x/sys/unix"
)

// TestSharesMemory: a process has its own memory, another one has not, and the kernel tells nothing
// of none. Package accountant asks it of children of fork and vfork.
func TestSharesMemory(t *testing.T) {
	same, err := SharesMemory(os.Getpid(), os.Getpid())
	if errors.Is(err, unix.EPERM) || errors.Is(err, unix.ENOSYS) {
		t.Skipf("kcmp(2): %v", err)
	}
	if !same || err != nil {
		t.Errorf("with itself: %v, %v", same, err)
	}
	child := exec.Command("sleep", "600")
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = child.Process.Kill(), child.Wait() })
	if same, err := SharesMemory(os.Getpid(), child.Process.Pid); same || err != nil {
		t.Errorf("with a child: %v, %v", same, err)
	}
	if same, err := SharesMemory(os.Getpid(), 1<<30); same || !errors.Is(err, unix.ESRCH) {
		t.Errorf("with nobody: %v, %v", same, err)
	}
}
