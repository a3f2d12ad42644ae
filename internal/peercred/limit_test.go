// SPDX-License-Identifier: Apache-2.0

package peercred

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/attune-hpc/attune/internal/quota"
	"github.com/attune-hpc/attune/internal/testing/lingering"
	"github.com/attune-hpc/attune/internal/testing/patience"
	"github.com/attune-hpc/attune/internal/unixmsg"
)

func TestLimit(t *testing.T) {
	l := &limited{open: quota.NewAtOnce[uint32](2), made: quota.NewRate[uint32](5, time.Hour)}
	const alice, bob = 61001, 61002
	var leave func()
	for n, want := range []bool{true, true, false, false} {
		var got bool
		var leaves func()
		if leaves, got = l.enter(alice); got != want {
			t.Errorf("connection %d: %v", n, got)
		}
		if got {
			leave = leaves
		}
	}
	if _, ok := l.enter(bob); !ok {
		t.Error("another user is not let in")
	}
	for range 100 {
		_, root := l.enter(0)
		if _, own := l.enter(uint32(os.Geteuid())); !root || !own {
			t.Fatal("root or the service's own user is not let in")
		}
	}
	for range 2 {
		leave() // the second time says nothing
	}
	if _, ok := l.enter(alice); !ok {
		t.Error("a place that became free is not given")
	}
	if _, ok := l.enter(alice); ok {
		t.Error("a place that became free is given twice")
	}
	often := 0
	for range 10 {
		if leave, ok := l.enter(bob); ok {
			leave()
			often++
		}
	}
	if often != 4 { // and once above
		t.Errorf("a user connects %d times of 10 in a loop, want 4", often)
	}
}

// TestLimitedConnection: it is told whose it is.
func TestLimitedConnection(t *testing.T) {
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Net: "unix", Name: filepath.Join(t.TempDir(), "s")})
	if err != nil {
		t.Fatal(err)
	}
	l, err := Limit(listener, 1)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	client, err := net.Dial("unix", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	conn, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	if peer, err := Of(conn.(syscall.Conn)); err != nil || peer.PID != os.Getpid() {
		t.Errorf("%+v, %v", peer, err)
	}
	conn.Close()
	l.Close()
	if _, err := l.Accept(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("a closed listener accepts: %v", err)
	}
}

// TestUnreadDescriptors: a peer that sends sockets which linger for good, read or not, has its
// connection end and its place given back.
func TestUnreadDescriptors(t *testing.T) {
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Net: "unix", Name: filepath.Join(t.TempDir(), "s")})
	if err != nil {
		t.Fatal(err)
	}
	l, err := Limit(listener, 1)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for _, read := range []bool{false, true} {
		client, err := net.Dial("unix", listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { client.Close() })
		conn, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		left := false
		conn.(*counted).leave = func() { left = true }
		ended := make(chan error, 1)
		if err := lingering.Send(t, client.(*net.UnixConn), "x"); err != nil {
			t.Fatal(err)
		}
		go func() {
			var err error
			if read {
				_, err = conn.Read(make([]byte, 8))
			}
			conn.Close()
			ended <- err
		}()
		if err := patience.Receive(t, "end of a connection", ended); errors.Is(err, unixmsg.ErrUnwanted) != read || !left {
			t.Errorf("read %v: got %v, left %v", read, err, left)
		}
	}
}

// TestCloseWithDescriptors: a listener is closed though a socket that lingers for good waits in a
// connection that nobody has accepted.
func TestCloseWithDescriptors(t *testing.T) {
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Net: "unix", Name: filepath.Join(t.TempDir(), "s")})
	if err != nil {
		t.Fatal(err)
	}
	l, err := Limit(listener, 1)
	if err != nil {
		t.Fatal(err)
	}
	client, err := net.Dial("unix", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	if err := lingering.Send(t, client.(*net.UnixConn), "x"); err != nil {
		t.Fatal(err)
	}
	closed := make(chan error, 1)
	go func() { closed <- l.Close() }()
	if err := patience.Receive(t, "end of Close", closed); err != nil {
		t.Error(err)
	}
}
