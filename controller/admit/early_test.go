// SPDX-License-Identifier: Apache-2.0

package admit

import (
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/attune-hpc/attune/controller/attach"
	"github.com/attune-hpc/attune/controller/ring"
	"github.com/attune-hpc/attune/controller/track"
	"github.com/attune-hpc/attune/internal/peercred"
	"github.com/attune-hpc/attune/internal/procid"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
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

// sourced is a tracker's source of nothing.
type sourced struct{ track.Source }

func (sourced) Close() error { return nil }

type nobody struct{}

func (nobody) Started(*attunev1.Process, *procid.Process) {}
func (nobody) Changed(*attunev1.Process)                  {}
func (nobody) Ended(*attunev1.ProcessEnded)               {}

// TestProcessesFromElsewhere: where some come whom nobody knows that starts them, none
// runs past the gate any more.
func TestProcessesFromElsewhere(t *testing.T) {
	path := filepath.Join(t.TempDir(), "gate", "g.sock")
	gate, err := attach.New(attach.Options{Path: path, Attached: func(attach.Attachment) {}})
	if err != nil {
		t.Fatal(err)
	}
	defer gate.Close()
	tracker, err := track.New(track.Options{JobID: t.Name(), Handler: nobody{}, Source: sourced{}})
	if err != nil {
		t.Fatal(err)
	}
	points := 0
	e := &early{points: func() int { return points }, tracker: tracker, gate: gate, log: slog.New(slog.DiscardHandler)}
	passes := func(what string, want bool) {
		t.Helper()
		if _, err := os.Stat(path + attach.EarlyHeaders); (err == nil) != want {
			t.Errorf("%s: %v, want %v", what, err == nil, want)
		}
	}
	passes("before anybody is known", false)
	e.knows()
	passes("with a process", true)
	e.holds(func() { points++ })
	passes("with a point in all", false)
	points--
	e.lets()
	passes("without it", true)
	e.strange()
	passes("with processes from elsewhere", false)
}
