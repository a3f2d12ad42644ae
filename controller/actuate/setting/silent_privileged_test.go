// SPDX-License-Identifier: Apache-2.0

//go:build privileged

package setting

import (
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/internal/testing/silentfs"
)

// TestWriterIsFoundWithoutItsServer: who else writes to a file is found though a server
// of other files that are open does not answer.
func TestWriterIsFoundWithoutItsServer(t *testing.T) {
	fs := silentfs.Mount(t, os.Getuid(), make([]byte, 1))
	for _, how := range []int{os.O_RDONLY, os.O_WRONLY} {
		file, err := os.OpenFile(fs.File, how, 0)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = file.Close() })
	}
	out, err := os.Create(filepath.Join(t.TempDir(), "out"))
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	var st unix.Stat_t
	if err := unix.Fstat(int(out.Fd()), &st); err != nil {
		t.Fatal(err)
	}
	pid, own := os.Getpid(), int(out.Fd())
	fs.Unasked(t, func() {
		s := sink{device: st.Dev, inode: st.Ino}
		if got, want := [2]int{s.writer(pid, -1), s.writer(pid, own)}, [2]int{own, -1}; got != want {
			t.Errorf("writers %d, want %d", got, want)
		}
	})
}

// TestSinkIsKnownWithoutItsServer: what a stream writes to is told, and whether a pipe has
// room that is such a file by now, though the server of that file does not answer.
func TestSinkIsKnownWithoutItsServer(t *testing.T) {
	fs := silentfs.Mount(t, os.Getuid(), make([]byte, 1))
	file, err := os.OpenFile(fs.File, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	fs.Unasked(t, func() {
		s, err := sinkOf(os.Getpid(), int(file.Fd()))
		if err != nil || s.mode != unix.S_IFREG {
			t.Errorf("mode %o, %v", s.mode, err)
		}
	})
	fs.Unasked(t, func() {
		pipe := sink{mode: unix.S_IFIFO, path: descriptorPath(os.Getpid(), int(file.Fd()))}
		if !pipe.room(1) {
			t.Error("no room where there is no pipe")
		}
	})
}
