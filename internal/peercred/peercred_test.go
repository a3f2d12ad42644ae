// SPDX-License-Identifier: Apache-2.0

package peercred

import (
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/internal/testing/leaktest"
)

// dialVariable makes this program connect to a socket and end.
const dialVariable = "PEERCRED_TEST_DIAL"

func TestMain(m *testing.M) {
	if path := os.Getenv(dialVariable); path != "" {
		_, err := net.Dial("unix", path)
		if err != nil {
			os.Exit(1)
		}
		os.Exit(0)
	}
	leaktest.Main(m)
}

// connected returns the accepted end of a connection whose other end this
// process has.
func connected(t *testing.T, network, address string) net.Conn {
	t.Helper()
	listener, err := net.Listen(network, address)
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	client, err := net.Dial(network, listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	server, err := listener.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { server.Close() })
	return server
}

func TestOwn(t *testing.T) {
	for _, network := range []string{"unix", "unixpacket"} {
		conn := connected(t, network, filepath.Join(t.TempDir(), "s")).(*net.UnixConn)
		want := Peer{PID: os.Getpid(), UID: os.Geteuid(), GID: os.Getegid()}
		if got, err := Of(conn); err != nil || got != want {
			t.Errorf("%s: %+v, %v, want %+v", network, got, err, want)
		}
		held, err := Hold(conn)
		if err != nil || held.Pidfd == nil {
			t.Fatalf("%s: %+v, %v", network, held, err)
		}
		if err := unix.PidfdSendSignal(int(held.Pidfd.Fd()), 0, nil, 0); err != nil {
			t.Errorf("%s: pidfd: %v", network, err)
		}
		held.Pidfd.Close()
	}
}

func TestNetwork(t *testing.T) {
	conn := connected(t, "tcp", "127.0.0.1:0").(*net.TCPConn)
	if peer, err := Of(conn); err == nil {
		t.Errorf("a peer on TCP is %+v", peer)
	}
	if peer, err := Hold(conn); err == nil || peer.Pidfd != nil {
		t.Errorf("a peer on TCP is held: %+v", peer)
	}
}

func TestClosed(t *testing.T) {
	conn := connected(t, "unix", filepath.Join(t.TempDir(), "s")).(*net.UnixConn)
	conn.Close()
	if peer, err := Of(conn); err == nil {
		t.Errorf("%+v", peer)
	}
}

// TestEnded: a peer that has hung up and ended is still told apart from a
// process that gets its id.
func TestEnded(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	listener, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	child := exec.Command("/proc/self/exe")
	child.Env = append(os.Environ(), dialVariable+"="+path)
	if err := child.Run(); err != nil {
		t.Fatal(err)
	}
	conn, err := listener.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	peer, err := Hold(conn.(*net.UnixConn))
	if err == nil {
		defer peer.Pidfd.Close()
		err = unix.PidfdSendSignal(int(peer.Pidfd.Fd()), 0, nil, 0)
	}
	if !errors.Is(err, unix.ESRCH) && !errors.Is(err, unix.EINVAL) {
		t.Errorf("an ended peer is held: %+v, %v", peer, err)
	}
}

func TestMapsAll(t *testing.T) {
	tests := []struct {
		name, ids string
		all       bool
	}{
		{"initial namespace", "         0          0 4294967295\n", true},
		{"one user", "         0       1000          1\n", false},
		{"root and subordinates", "0 1000 1\n1 100000 65536\n", false},
		{"nothing yet", "", false},
	}
	for _, tt := range tests {
		if got := mapsAll(tt.ids); got != tt.all {
			t.Errorf("%s: %v", tt.name, got)
		}
	}
}

func TestDistinct(t *testing.T) {
	if err := distinct(noUID); !errors.Is(err, ErrNoUser) {
		t.Errorf("no user: %v", err)
	}
	if err := distinct(1000); err != nil {
		t.Errorf("a user: %v", err)
	}
}
