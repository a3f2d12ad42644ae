// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"os"
	"os/exec"
	"testing"

	"github.com/attune-hpc/attune/controller/attach"
	"github.com/attune-hpc/attune/controller/ring"
	"github.com/attune-hpc/attune/internal/peercred"
)

// TestEarlyProcessHasItsMemory: whoever has left memory and executed another
// program since, or has ended and given its pid away, is not taken for the one
// that did.
func TestEarlyProcessHasItsMemory(t *testing.T) {
	memory, err := ring.New(ring.Geometry{Slots: 1, Rings: 1, RingRecords: 64})
	if err != nil {
		t.Fatal(err)
	}
	defer memory.Close()
	other := exec.Command("sleep", "100")
	if err := other.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = other.Process.Kill(), other.Wait() })
	for pid, want := range map[int]bool{os.Getpid(): true, other.Process.Pid: false, 1 << 22: false} {
		early := attach.Attachment{Peer: peercred.Peer{PID: pid}, Hello: attach.Hello{Flags: attach.Early}, Memory: memory}
		if got := sameImage(early); got != want {
			t.Errorf("pid %d: %v, want %v", pid, got, want)
		}
	}
}
