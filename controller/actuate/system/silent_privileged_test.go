// SPDX-License-Identifier: Apache-2.0

//go:build privileged

package system

import (
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/internal/procid"
	"github.com/attune-hpc/attune/internal/testing/patience"
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
	fs.Silence(true)
	defer fs.Silence(false)
	found := make(chan []Place, 1)
	go func() {
		places, err := target.descriptors(OnSockets, unix.S_IFSOCK)
		if err != nil {
			t.Error(err)
		}
		found <- places
	}()
	select {
	case <-fs.Asked:
		t.Error("the server was asked")
	case places := <-found:
		if len(places) == 0 {
			t.Error("no socket was found")
		}
	case <-time.After(patience.Limit):
		t.Error("waited in vain for the descriptors")
	}
}
