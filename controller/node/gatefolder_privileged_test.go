// SPDX-License-Identifier: Apache-2.0

//go:build privileged

package node

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/internal/testing/asuser"
)

// TestGateFolder: a session's user reaches the socket in the folder of its start gate, another user
// does not, and nobody looks into it; where there are no access control lists both reach it.
func TestGateFolder(t *testing.T) {
	for _, row := range []struct {
		name, filesystem string
		bob              error // of connecting
		err              error
	}{
		{"with access control lists", "tmpfs", unix.EACCES, nil},
		{"without", "ramfs", nil, errOpenFolder},
	} {
		t.Run(row.name, func(t *testing.T) {
			disk := asuser.Folder(t)
			if err := unix.Mount("attune", disk, row.filesystem, 0, "mode=755"); err != nil {
				t.Fatal(err)
			}
			defer func() {
				if err := unix.Unmount(disk, unix.MNT_DETACH); err != nil {
					t.Error(err)
				}
			}()
			folder := filepath.Join(disk, "1")
			for range 2 { // the second time it is there
				if err := makeGateFolder(folder, ann); !errors.Is(err, row.err) {
					t.Fatalf("got %v, want %v", err, row.err)
				}
			}
			path := filepath.Join(folder, "gate")
			listener, err := net.Listen("unix", path)
			if err != nil {
				t.Fatal(err)
			}
			defer listener.Close()
			if err := os.Chmod(path, 0o666); err != nil {
				t.Fatal(err)
			}
			for uid, want := range map[uint32]error{ann: nil, bob: row.bob, 0: nil} {
				conn, err := asuser.Dial(uid, path)
				if err == nil {
					conn.Close()
				}
				if !errors.Is(err, want) {
					t.Errorf("user %d: got %v, want %v", uid, err, want)
				}
			}
			if file, err := asuser.Open(ann, folder); !errors.Is(err, unix.EACCES) {
				t.Errorf("the user looks into the folder: %v, %v", file, err)
			}
		})
	}
}
