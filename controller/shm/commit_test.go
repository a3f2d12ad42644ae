// SPDX-License-Identifier: Apache-2.0

package shm

import (
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/internal/testing/files"
)

func TestReadCommits(t *testing.T) {
	path := filepath.Join(t.TempDir(), "overcommit_memory")
	for text, want := range map[string]bool{"0\n": false, "1\n": false, "2\n": true, "": false, "22\n": false} {
		files.Write(t, path, text, 0o600)
		if got := readCommits(path); got != want {
			t.Errorf("%q: %t, want %t", text, got, want)
		}
	}
	if readCommits(path + ".gone") {
		t.Error("a kernel that says nothing")
	}
}

// TestCommittedFile: where memory is had only if it is there, a file is small and has all
// of it before anybody uses it.
func TestCommittedFile(t *testing.T) {
	for _, committed := range []bool{true, false} {
		fd, err := memfd(FileName)
		if err != nil {
			t.Fatal(err)
		}
		m, err := newIn(os.NewFile(uintptr(fd), FileName), Geometry{}, committed)
		if err != nil {
			t.Fatal(err)
		}
		var info unix.Stat_t
		if err := unix.Fstat(int(m.File().Fd()), &info); err != nil {
			t.Fatal(err)
		}
		if whole := info.Blocks*512 >= info.Size; whole != committed {
			t.Errorf("%d bytes in a file of %d, committed: %t", info.Blocks*512, info.Size, committed)
		}
		if committed && info.Size > 1<<20 {
			t.Errorf("a file of %d bytes, want 1 MB at most", info.Size)
		}
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	}
}
