// SPDX-License-Identifier: Apache-2.0

//go:build privileged

package system

import (
	"net"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/internal/procid"
	"github.com/attune-hpc/attune/internal/testing/silentfs"
)

// TestDescriptorsAreListedWithoutTheirServer: sockets and pipes are found though a server
// of files that the process has open does not answer.
func TestDescriptorsAreListedWithoutTheirServer(t *testing.T) {
	fs := silentfs.Mount(t, os.Getuid(), make([]byte, 1))
	file, err := os.Open(fs.File)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	socket, err := net.Listen("unix", filepath.Join(t.TempDir(), "s"))
	if err != nil {
		t.Fatal(err)
	}
	defer socket.Close()
	identity, err := procid.Of(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	target, err := Open(identity)
	if err != nil {
		t.Fatal(err)
	}
	defer target.Close()
	fs.Unasked(t, func() {
		places, err := target.descriptors(OnSockets, unix.S_IFSOCK)
		if err != nil || len(places) == 0 {
			t.Errorf("sockets %v, %v", places, err)
		}
	})
	number := int(file.Fd())
	fs.Unasked(t, func() {
		if _, err := oneDescriptor(target, number, OnSockets, unix.S_IFSOCK, "socket", nil); err == nil {
			t.Error("the file is a socket")
		}
	})
	fs.Unasked(t, func() { // what was a socket under this number was closed
		if fd, err := target.duplicate(Place{Scope: OnSockets, Number: number, Inode: 1}); !gone(err) {
			t.Errorf("descriptor %d, %v", fd, err)
		}
	})
}
