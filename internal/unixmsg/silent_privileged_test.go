// SPDX-License-Identifier: Apache-2.0

//go:build privileged

package unixmsg_test

import (
	"errors"
	"net"
	"os"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/internal/testing/silentfs"
	"github.com/attune-hpc/attune/internal/unixmsg"
)

// TestFilesOfSilentServers: reading a connection with a file in it asks nothing of the file's server.
func TestFilesOfSilentServers(t *testing.T) {
	fs := silentfs.Mount(t, os.Getuid(), make([]byte, 1))
	from, to := mustConnectText(t, net.ListenConfig{})
	fd, err := unix.Open(fs.File, unix.O_RDONLY|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	_, _, err = from.WriteMsgUnix([]byte("text"), unix.UnixRights(fd), nil)
	if err = errors.Join(err, unix.Close(fd)); err != nil {
		t.Fatal(err)
	}
	fs.Unasked(t, func() {
		if _, err := to.Read(make([]byte, 8)); !errors.Is(err, unixmsg.ErrUnwanted) {
			t.Errorf("got %v", err)
		}
	})
	if err := to.Close(); err != nil {
		t.Error(err)
	}
}
