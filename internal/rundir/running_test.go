// SPDX-License-Identifier: Apache-2.0

package rundir

import (
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"golang.org/x/sys/unix"
)

func TestRunning(t *testing.T) {
	base := t.TempDir()
	u := User{UID: os.Geteuid(), Env: func(name string) string {
		if name == "XDG_RUNTIME_DIR" {
			return base
		}
		return ""
	}}
	dir, err := Create(u)
	if err != nil {
		t.Fatal(err)
	}
	if found := Running(u); !slices.Contains(found, dir.Path) {
		t.Errorf("%q lacks %s", found, dir.Path)
	}
	if again := Running(u); !slices.Contains(again, dir.Path) {
		t.Errorf("to look once more finds %q", again)
	}
	if err := dir.lock.Close(); err != nil { // as when the process dies
		t.Fatal(err)
	}
	if found := Running(u); slices.Contains(found, dir.Path) {
		t.Errorf("a dead run is found: %q", found)
	}
	_ = dir.Remove() // its lock is closed already
}

func TestRunningOfOthers(t *testing.T) {
	base := t.TempDir()
	run := filepath.Join(base, "attune-1", prefix+"1")
	// What a user may put there to have root wait or read elsewhere.
	trap := filepath.Join(base, "attune-2", prefix+"2")
	if err := errors.Join(os.MkdirAll(run, 0o700), os.MkdirAll(trap, 0o700),
		unix.Mkfifo(filepath.Join(trap, lockName), 0o600),
		os.Symlink(filepath.Join(base, "attune-1"), filepath.Join(base, "attune-3"))); err != nil {
		t.Fatal(err)
	}
	held, err := lock(filepath.Join(run, lockName))
	if err != nil {
		t.Fatal(err)
	}
	defer held.Close()
	pattern, self := filepath.Join(base, "attune-*"), os.Geteuid()
	want := map[int][]string{self: {run}}
	if found := runningOfOthers(self+1, pattern); !maps.EqualFunc(found, want, slices.Equal) {
		t.Errorf("%v, want %v", found, want)
	}
	if found := runningOfOthers(self, pattern); len(found) > 0 {
		t.Errorf("one's own are others': %v", found)
	}
}
