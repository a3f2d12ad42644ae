// SPDX-License-Identifier: Apache-2.0

package peercred

import (
	"net"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

func TestLimit(t *testing.T) {
	l := &limited{perUser: 2, open: make(map[int]int)}
	const alice, bob = 61001, 61002
	for n, want := range []bool{true, true, false, false} {
		if got := l.enter(alice); got != want {
			t.Errorf("connection %d: %v", n, got)
		}
	}
	if !l.enter(bob) {
		t.Error("another user is not let in")
	}
	for range 100 {
		if !l.enter(0) || !l.enter(os.Geteuid()) {
			t.Fatal("root or the service's own user is not let in")
		}
	}
	l.leave(alice)
	if !l.enter(alice) || l.enter(alice) {
		t.Error("a place that became free")
	}
	l.leave(bob)
	if _, there := l.open[bob]; there {
		t.Error("users who are gone are kept")
	}
}

// TestLimitedConnection: it is told whose it is, and counts until it is closed.
func TestLimitedConnection(t *testing.T) {
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Net: "unix", Name: filepath.Join(t.TempDir(), "s")})
	if err != nil {
		t.Fatal(err)
	}
	l := Limit(listener, 1)
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
	open := func() int { return l.(*limited).open[os.Geteuid()] }
	if open() != 1 {
		t.Errorf("%d connections count", open())
	}
	for range 2 {
		conn.Close()
	}
	if open() != 0 {
		t.Errorf("%d connections count after it was closed twice", open())
	}
	l.Close()
	if _, err := l.Accept(); err == nil {
		t.Error("a closed listener accepts")
	}
}
