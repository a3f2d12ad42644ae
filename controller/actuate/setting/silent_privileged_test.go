// SPDX-License-Identifier: Apache-2.0

//go:build privileged && amd64

package setting

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/internal/testing/patience"
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
	fs.Silence(true)
	defer fs.Silence(false)
	pid, own := os.Getpid(), int(out.Fd())
	found := make(chan [2]int, 1)
	go func() {
		s := sink{device: st.Dev, inode: st.Ino}
		found <- [2]int{s.writer(pid, -1), s.writer(pid, own)}
	}()
	select {
	case <-fs.Asked:
		t.Error("the server was asked")
	case got := <-found:
		if want := [2]int{own, -1}; got != want {
			t.Errorf("writers %d, want %d", got, want)
		}
	case <-time.After(patience.Limit):
		t.Error("waited in vain for the writers")
	}
}
