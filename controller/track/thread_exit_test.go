// SPDX-License-Identifier: Apache-2.0

package track

import (
	"os/exec"
	"syscall"
	"testing"

	"github.com/attune-hpc/attune/internal/procid"
	"github.com/attune-hpc/attune/internal/testing/patience"
	"github.com/attune-hpc/attune/internal/testing/targets"
)

// TestThreadEndsBeforeTheLook: the process connector tells of the end of a process' first thread.
// A forked process that nobody has looked at yet does not end with it while others live on.
func TestThreadEndsBeforeTheLook(t *testing.T) {
	s, h := mustState(t, Options{JobID: "threads", Source: still{}})
	s.feed.on = true
	target := targets.Launch(t, exec.Command("cat"))
	target.Ask(t, "it runs")
	fork := Event{Kind: Fork, PID: target.PID, Member: true, Time: monotonic()}
	s.event(fork)
	first := fork
	first.Kind, first.HasStatus, first.Time = Exit, true, monotonic()
	s.event(first)
	if len(h.started) != 1 || h.held[0] == nil || len(h.ended) != 0 {
		t.Fatalf("told of %v, ends %v", h.started, h.ended)
	}
	target.Kill()
	patience.Until(t, "it ends", func() bool {
		stat, err := procid.ReadStat(target.PID)
		return err != nil || stat.Zombie()
	})
	s.exited(<-s.watchers.exits)
	if len(h.started) != 1 || len(h.ended) != 1 || syscall.WaitStatus(h.ended[0].GetWaitStatus()).Signal() != syscall.SIGKILL {
		t.Fatalf("told of %v, ends %v", h.started, h.ended)
	}
	if h.ended[0].GetEndedUnixNano() <= unixNano(first.Time) {
		t.Errorf("ended with its first thread, at %d", h.ended[0].GetEndedUnixNano())
	}
}
