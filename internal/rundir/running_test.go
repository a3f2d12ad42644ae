// SPDX-License-Identifier: Apache-2.0

package rundir

import (
	"os"
	"slices"
	"testing"
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
