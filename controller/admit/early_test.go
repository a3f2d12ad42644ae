// SPDX-License-Identifier: Apache-2.0

package admit

import (
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/attune-hpc/attune/controller/gate"
	"github.com/attune-hpc/attune/controller/shm"
	"github.com/attune-hpc/attune/controller/track"
	"github.com/attune-hpc/attune/internal/peercred"
	"github.com/attune-hpc/attune/internal/procid"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// TestEarlyProcessHasItsMemory: whoever has left memory and executed another
// program since, or has ended and given its pid away, is not taken for the one
// that did.
func TestEarlyProcessHasItsMemory(t *testing.T) {
	memory, err := shm.New(shm.Geometry{Slots: 1, Rings: 1, RingRecords: 64})
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
		early := gate.Attachment{Peer: peercred.Peer{PID: pid}, Hello: gate.Hello{Flags: gate.Early}, Memory: memory}
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
	g, err := gate.New(gate.Options{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	tracker, err := track.New(track.Options{JobID: t.Name(), Handler: nobody{}, Source: sourced{}})
	if err != nil {
		t.Fatal(err)
	}
	points := 0
	e := &early{points: func() int { return points }, tracker: tracker, gate: g, log: slog.New(slog.DiscardHandler)}
	passes := func(what string, want bool) {
		t.Helper()
		if _, err := os.Stat(path + gate.EarlyHeaders); (err == nil) != want {
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
