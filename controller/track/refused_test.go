// SPDX-License-Identifier: Apache-2.0

package track

import (
	"errors"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/attune-hpc/attune/internal/procid"
	"github.com/attune-hpc/attune/internal/testing/patience"
	"github.com/attune-hpc/attune/internal/testing/targets"
)

// full is a source that has room for nobody, or again for all.
type full struct {
	still
	room  bool
	added int
}

func (f *full) Add(int) error {
	f.added++
	if !f.room {
		return errors.New("no room")
	}
	return nil
}

// TestRefused: what a process does that the source does not follow is found by scans. They
// ask the source again, until it has room, and then leave the process to it.
func TestRefused(t *testing.T) {
	source := new(full)
	s, h := mustState(t, Options{JobID: "refused", Source: source})
	target := targets.Launch(t, exec.Command("sh", "-c", "read line; exec cat"))
	if _, err := s.follow(target.PID, nil); err != nil || len(h.started) != 1 {
		t.Fatalf("%v, told of %v", err, h.started)
	}
	if err := target.Say("execute"); err != nil {
		t.Fatal(err)
	}
	patience.Until(t, "cat", func() bool {
		device, inode, _ := procid.ExecutableFile(target.PID)
		return device != h.started[0].Identity.ExeDevice || inode != h.started[0].Identity.ExeInode
	})
	s.scanner.scan()
	if len(h.started) != 2 || filepath.Base(h.started[1].Executable) == filepath.Base(h.started[0].Executable) {
		t.Fatalf("told of %v, want two images", h.started)
	}
	source.room = true
	s.scanner.scan()
	asked := source.added
	s.scanner.scan()
	if source.added != asked || !s.feed.tells(target.PID) {
		t.Errorf("followed: %v; asked %d times, then %d", s.feed.tells(target.PID), asked, source.added)
	}
}

// TestRefusedEnds: the end of a process of which nobody tells is told at the next scan.
func TestRefusedEnds(t *testing.T) {
	s, h := mustState(t, Options{JobID: "refused", Source: new(full)})
	target := targets.Launch(t, exec.Command("cat"))
	if _, err := s.follow(target.PID, nil); err != nil {
		t.Fatal(err)
	}
	target.Kill()
	patience.Until(t, "it ends", func() bool {
		stat, err := procid.ReadStat(target.PID)
		return err != nil || stat.Zombie()
	})
	s.scanner.scan()
	if len(h.ended) != 1 || len(s.members.over) != 0 || len(s.feed.refused) != 0 {
		t.Errorf("ends %v, %v are still to be told, %v refused", h.ended, s.members.over, s.feed.refused)
	}
}

// TestRefusedAreAskedForOnce: a scan asks no further where there is no room.
func TestRefusedAreAskedForOnce(t *testing.T) {
	source := new(full)
	s, _ := mustState(t, Options{JobID: "refused", Source: source})
	for range 3 {
		if _, err := s.follow(targets.Launch(t, exec.Command("cat")).PID, nil); err != nil {
			t.Fatal(err)
		}
	}
	asked := source.added
	s.scanner.scan()
	if got := source.added - asked; got != 1 {
		t.Errorf("asked %d times in a scan, want once", got)
	}
}
