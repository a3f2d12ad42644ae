// SPDX-License-Identifier: Apache-2.0

package unixmsg_test

import (
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/internal/testing/lingering"
	"github.com/attune-hpc/attune/internal/testing/openfiles"
	"github.com/attune-hpc/attune/internal/testing/patience"
	"github.com/attune-hpc/attune/internal/unixmsg"
)

// TestLingeringDescriptors: whoever closes a connection with a socket in it that lingers for good,
// or reads it, does not wait.
func TestLingeringDescriptors(t *testing.T) {
	for _, row := range []struct {
		name, network string
		send          func(t testing.TB, conn *net.UnixConn, text string) error
		end           func(conn *net.UnixConn) error
		want          error
	}{
		{"stream that is closed", "unix", lingering.Send, unixmsg.Close, nil},
		{"packets that are closed", "unixpacket", lingering.Send, unixmsg.Close, nil},
		{"stream that is refused", "unix", lingering.Send, refuse, nil},
		{"packets that are refused", "unixpacket", lingering.Send, refuse, nil},
		{"stream that is refused by its descriptor", "unix", lingering.Send, refuseDescriptor, nil},
		{"packets that are refused by their descriptor", "unixpacket", lingering.Send, refuseDescriptor, nil},
		{"stream that is read", "unix", lingering.Send, readAndClose, unixmsg.ErrUnwanted},
		{"packets that are read", "unixpacket", lingering.Send, readPacketAndClose, unixmsg.ErrUnwanted},
		{"stream with urgent data that is closed", "unix", lingering.SendUrgent, unixmsg.Close, nil},
		{"stream with urgent data that is read", "unix", lingering.SendUrgent, readAndClose, unixmsg.ErrUnwanted},
	} {
		t.Run(row.name, func(t *testing.T) {
			from, to := mustConnect(t, row.network, net.ListenConfig{})
			if err := row.send(t, from, "x"); errors.Is(err, unix.EOPNOTSUPP) {
				t.Skip("this kernel has no urgent data on Unix sockets")
			} else if err != nil {
				t.Fatal(err)
			}
			if _, err := from.Write([]byte("text")); err != nil {
				t.Fatal(err)
			}
			ended := make(chan error, 1)
			go func() { ended <- row.end(to) }()
			if err := patience.Receive(t, "end of the call", ended); !errors.Is(err, row.want) {
				t.Errorf("got %v, want %v", err, row.want)
			}
		})
	}
}

func readPacketAndClose(conn *net.UnixConn) error {
	_, _, err := unixmsg.Read(conn, 4, 0)
	return errors.Join(err, unixmsg.Close(conn))
}

func readAndClose(conn *net.UnixConn) error {
	text, err := unixmsg.NewText(conn)
	if err != nil {
		return err
	}
	_, err = text.Read(make([]byte, 4))
	return errors.Join(err, text.Close())
}

// TestText: a stream without descriptors is read as any, whether the kernel refuses them or not.
func TestText(t *testing.T) {
	for name, listening := range map[string]net.ListenConfig{"looked for": {}, "refused": {Control: unixmsg.RefuseFiles}} {
		t.Run(name, func(t *testing.T) {
			from, to := mustConnectText(t, listening)
			if err := to.SetReadDeadline(time.Now().Add(-time.Second)); err != nil {
				t.Fatal(err)
			}
			if n, err := to.Read(make([]byte, 8)); n != 0 || !errors.Is(err, os.ErrDeadlineExceeded) {
				t.Errorf("beyond the deadline: %d bytes, %v", n, err)
			}
			if err := to.SetReadDeadline(time.Time{}); err != nil {
				t.Fatal(err)
			}
			if _, err := from.Write([]byte("text")); err != nil {
				t.Fatal(err)
			}
			from.Close()
			b := make([]byte, 8)
			if n, err := to.Read(nil); n != 0 || err != nil {
				t.Errorf("nothing: %d bytes, %v", n, err)
			}
			if n, err := to.Read(b); string(b[:n]) != "text" || err != nil {
				t.Errorf("got %q, %v", b[:n], err)
			}
			if n, err := to.Read(b); n != 0 || err != io.EOF { //nolint:errorlint // a Read says just that
				t.Errorf("at its end: %d bytes, %v", n, err)
			}
			for _, want := range []error{nil, net.ErrClosed} {
				if err := to.Close(); !errors.Is(err, want) {
					t.Errorf("close: got %v, want %v", err, want)
				}
			}
		})
	}
}

// TestDescriptorsAreNotTaken: a stream is read up to a descriptor, which stays in it.
func TestDescriptorsAreNotTaken(t *testing.T) {
	from, to := mustConnectText(t, net.ListenConfig{})
	if _, err := from.Write([]byte("text")); err != nil {
		t.Fatal(err)
	}
	b := make([]byte, 4)
	if n, err := to.Read(b); string(b[:n]) != "text" || err != nil {
		t.Fatalf("got %q, %v", b[:n], err)
	}
	if _, _, err := from.WriteMsgUnix([]byte("more"), unix.UnixRights(0), nil); err != nil {
		t.Fatal(err)
	}
	if err := to.SetReadDeadline(time.Now().Add(patience.Limit)); err != nil {
		t.Fatal(err)
	}
	openfiles.Limit(t, 0, func() {
		for range 2 {
			if n, err := to.Read(b); n != 0 || !errors.Is(err, unixmsg.ErrUnwanted) {
				t.Errorf("got %q, %v", b[:n], err)
			}
		}
	})
}

func mustConnectText(t *testing.T, listening net.ListenConfig) (from *net.UnixConn, to *unixmsg.Text) {
	t.Helper()
	from, conn := mustConnect(t, "unix", listening)
	to, err := unixmsg.NewText(conn)
	if err != nil {
		t.Fatal(err)
	}
	return from, to
}

// TestRefuseFiles: the kernel refuses descriptors, if it can, and nothing else.
func TestRefuseFiles(t *testing.T) {
	for _, network := range []string{"unix", "unixpacket"} {
		from, to := mustConnect(t, network, net.ListenConfig{Control: unixmsg.RefuseFiles})
		can := true
		if raw, err := to.SyscallConn(); err != nil {
			t.Fatal(err)
		} else if err := raw.Control(func(fd uintptr) {
			_, err := unix.GetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_PASSRIGHTS)
			can = !errors.Is(err, unix.ENOPROTOOPT)
		}); err != nil {
			t.Fatal(err)
		}
		_, _, err := from.WriteMsgUnix([]byte("text"), unix.UnixRights(0), nil)
		if errors.Is(err, unix.EPERM) != can || !can && err != nil {
			t.Errorf("%s: descriptors: %v", network, err)
		}
		if _, err := from.Write([]byte("text")); err != nil {
			t.Errorf("%s: %v", network, err)
		}
	}
}

func refuse(conn *net.UnixConn) error {
	var refused unixmsg.Refused
	refused.Add(conn)
	return refused.Close()
}

func refuseDescriptor(conn *net.UnixConn) error {
	file, err := conn.File()
	if err != nil {
		return err
	}
	fd, err := unix.Dup(int(file.Fd()))
	if err := errors.Join(err, file.Close(), conn.Close()); err != nil {
		return err
	}
	var refused unixmsg.Refused
	refused.AddDescriptor(fd)
	return refused.Close()
}

// TestRefused: connections that may hold descriptors are closed together, some dozens at the most,
// and their peers see the end before. Others are closed at once.
func TestRefused(t *testing.T) {
	var refused unixmsg.Refused
	open := openfiles.Count(t)
	for _, tt := range []struct {
		name, text string
		adds       int
		most       int // connections of this many that are not closed yet
	}{
		{"empty ones", "", 1, 0},
		{"one with a byte", "x", 1, 1},
		{"many with a byte", "x", 40, 39},
	} {
		kept := 0
		for range tt.adds {
			from, to := mustConnect(t, "unix", net.ListenConfig{})
			if _, err := from.Write([]byte(tt.text)); err != nil {
				t.Fatal(err)
			}
			refused.Add(to)
			if _, err := from.Read(make([]byte, 1)); err == nil {
				t.Errorf("%s: the peer does not see the end", tt.name)
			}
			from.Close()
			kept = max(kept, openfiles.Count(t)-open)
		}
		if kept > tt.most || tt.most > 0 && kept == 0 || refused.Waiting() != (tt.most > 0) {
			t.Errorf("%s: %d are left open, waiting %v", tt.name, kept, refused.Waiting())
		}
		if err := refused.Close(); err != nil {
			t.Error(err)
		}
		if left := openfiles.Count(t) - open; left != 0 || refused.Waiting() {
			t.Errorf("%s: %d are open after the end", tt.name, left)
		}
	}
}

// mustConnect returns both ends of a connection to a listener.
func mustConnect(t *testing.T, network string, listening net.ListenConfig) (from, to *net.UnixConn) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "s")
	listener, err := listening.Listen(t.Context(), network, path)
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	client, err := net.Dial(network, path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	server, err := listener.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { server.Close() })
	return client.(*net.UnixConn), server.(*net.UnixConn)
}

// TestOthersAreNotKept: what is closed beside such a connection ends at once, as its locks do.
func TestOthersAreNotKept(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	for range 50 {
		first, second := mustOpen(t, path), mustOpen(t, path)
		if err := unix.Flock(int(first.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
			t.Fatal(err)
		}
		fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
		if err := errors.Join(err, unixmsg.CloseNumber(fd), first.Close()); err != nil {
			t.Fatal(err)
		}
		if err := unix.Flock(int(second.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
			t.Fatalf("locked yet: %v", err)
		}
		second.Close()
	}
}

func mustOpen(t *testing.T, path string) *os.File {
	t.Helper()
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	return file
}
