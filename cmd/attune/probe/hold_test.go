// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"io"
	"os/exec"
	"slices"
	"testing"

	"github.com/attune-hpc/attune/cmd/attune/internal/cli"
)

// sleeper starts a process that only ends when the test does, or is killed.
func sleeper(t *testing.T) *exec.Cmd {
	t.Helper()
	cmd := exec.Command("sleep", "1000")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { kill(cmd) })
	return cmd
}

func kill(cmd *exec.Cmd) {
	_ = cmd.Process.Kill() // it may have ended
	_ = cmd.Wait()
}

// TestHoldWhileAProcessEnds: the others are held and known all the same.
func TestHoldWhileAProcessEnds(t *testing.T) {
	ownRunDir(t)
	stays, ends, ended := sleeper(t), sleeper(t), sleeper(t)
	kill(ended)
	flags := holdFlags{outside: true, budget: 100}
	pids := []int{ended.Process.Pid, ends.Process.Pid, stays.Process.Pid}
	s, err := newProbeSession(t.Context(), &cli.Env{Stdout: io.Discard, Stderr: io.Discard}, pids, flags)
	if err != nil {
		t.Fatal(err)
	}
	attached, running, err := hold(t.Context(), s, pids)
	defer func() { letGo(t.Context(), s, attached) }()
	if want := ids([]int{stays.Process.Pid, ends.Process.Pid}); err != nil || !slices.Equal(slices.Sorted(slices.Values(running)), want) {
		t.Errorf("held are %v, want %v: %v", running, want, err)
	}
	kill(ends) // as if while it was entered
	running, err = awaitKnown(t.Context(), s, attached, pids)
	if want := ids([]int{stays.Process.Pid}); err != nil || !slices.Equal(running, want) {
		t.Errorf("held are %v, want %v: %v", running, want, err)
	}
}
