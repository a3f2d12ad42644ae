// SPDX-License-Identifier: Apache-2.0

//go:build privileged

package peercred

import (
	"net"
	"os"
	"path/filepath"
	"testing"

	"github.com/attune-hpc/attune/internal/testing/asuser"
	"github.com/attune-hpc/attune/internal/testing/lingering"
	"github.com/attune-hpc/attune/internal/testing/patience"
)

// TestRefusedWithDescriptors: refused connections with sockets in them that linger for good keep
// nobody else waiting, and no thread.
func TestRefusedWithDescriptors(t *testing.T) {
	const alice, refused = 61001, 100
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Net: "unix", Name: filepath.Join(asuser.Folder(t), "s")})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(listener.Addr().String(), everybody); err != nil {
		t.Fatal(err)
	}
	l, err := Limit(listener, 1)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	dial := func(uid uint32) *net.UnixConn {
		conn, err := asuser.Dial(uid, listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
		return conn.(*net.UnixConn)
	}
	accept := func(whose string) net.Conn {
		accepted := make(chan net.Conn, 1)
		go func() {
			conn, err := l.Accept()
			if err != nil {
				t.Error(err)
			}
			accepted <- conn
		}()
		return patience.Receive(t, "connection of "+whose, accepted)
	}
	dial(alice)
	defer accept("a user, who may have one").Close()
	before := threads(t)
	for range refused {
		if err := lingering.Send(t, dial(alice), "x"); err != nil {
			t.Fatal(err)
		}
	}
	dial(0)
	accept("another user").Close()
	patience.Until(t, "the threads to end that have closed descriptors", func() bool { return threads(t) < before+refused/2 })
}

// threads counts those of this process.
func threads(t *testing.T) int {
	t.Helper()
	all, err := os.ReadDir("/proc/self/task")
	if err != nil {
		t.Fatal(err)
	}
	return len(all)
}
