// SPDX-License-Identifier: Apache-2.0

//go:build privileged

package detail

import (
	"errors"
	"os"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/internal/procid"
	"github.com/attune-hpc/attune/internal/testing/silentfs"
)

// TestFileOfAServerIsNotBorrowed: a file under the number of a socket that was closed is left
// alone, though its server gives it that socket's number and does not answer.
func TestFileOfAServerIsNotBorrowed(t *testing.T) {
	fs := silentfs.Mount(t, os.Getuid(), make([]byte, 1))
	file, err := os.Open(fs.File)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	var st unix.Stat_t
	if err := unix.Fstat(int(file.Fd()), &st); err != nil {
		t.Fatal(err)
	}
	identity, err := procid.Of(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	held, err := procid.Hold(identity)
	if err != nil {
		t.Fatal(err)
	}
	defer held.Close()
	p := &process{held: held, table: newTable("/proc/self/fd")}
	fs.Unasked(t, func() {
		err := p.borrow(&entry{fd: int(file.Fd()), inode: st.Ino}, func(int) error { return nil })
		if !errors.Is(err, errClosed) {
			t.Errorf("got %v", err)
		}
	})
}
