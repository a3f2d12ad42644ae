// SPDX-License-Identifier: Apache-2.0

package proc_test

import (
	"errors"
	"os/exec"
	"testing"

	"github.com/attune-hpc/attune/internal/proc"
	"github.com/attune-hpc/attune/internal/testing/targets"
)

// TestSharedImageGone: a program that is executed no more is gone, although its memory
// is there, since another process has it too.
func TestSharedImageGone(t *testing.T) {
	target := targets.StartCommand(t, exec.Command(targets.Program(t, "shares")))
	h, err := proc.Open(target.PID)
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	if err := h.Current(); err != nil {
		t.Error(err)
	}
	if err := target.Say("exec"); err != nil {
		t.Fatal(err)
	}
	target.Expect(t, "ready")
	if err := h.Current(); !errors.Is(err, proc.ErrImageGone) {
		t.Errorf("%v, want %v", err, proc.ErrImageGone)
	}
}
