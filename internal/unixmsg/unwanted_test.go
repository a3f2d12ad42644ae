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
	"github.com/attune-hpc/attune/internal/testing/patience"
	"github.com/attune-hpc/attune/internal/unixmsg"
)

// TestLingeringDescriptors: whoever closes a connection with a socket in it that lingers for good,
// or reads past it, does not wait.
func TestLingeringDescriptors(t *testing.T) {
	for _, row := range []struct {
		name, network string
		end           func(conn *net.UnixConn) error
		want          error
	}{
		{"stream that is closed", "unix", unixmsg.Close, nil},
		{"packets that are closed", "unixpacket", unixmsg.Close, nil},
		{"stream that is closed by its descriptor", "unix", closeDescriptor, nil},
		{"packets that are closed by their descriptor", "unixpacket", closeDescriptor, nil},
		{"stream that is read", "unix", func(conn *net.UnixConn) error {
			_, err := unixmsg.ReadText(conn, make([]byte, 4))
			return err
		}, unixmsg.ErrUnwanted},
	} {
		t.Run(row.name, func(t *testing.T) {
			from, to := mustConnect(t, row.network, net.ListenConfig{})
			if err := lingering.Send(t, from, "text"); err != nil {
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

// TestReadText: a stream without descriptors is read as any.
func TestReadText(t *testing.T) {
	from, to := mustConnect(t, "unix", net.ListenConfig{})
	if err := to.SetReadDeadline(time.Now().Add(-time.Second)); err != nil {
		t.Fatal(err)
	}
	if n, err := unixmsg.ReadText(to, make([]byte, 8)); n != 0 || !errors.Is(err, os.ErrDeadlineExceeded) {
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
	if n, err := unixmsg.ReadText(to, nil); n != 0 || err != nil {
		t.Errorf("nothing: %d bytes, %v", n, err)
	}
	if n, err := unixmsg.ReadText(to, b); string(b[:n]) != "text" || err != nil {
		t.Errorf("got %q, %v", b[:n], err)
	}
	if n, err := unixmsg.ReadText(to, b); n != 0 || err != io.EOF { //nolint:errorlint // a Read says just that
		t.Errorf("at its end: %d bytes, %v", n, err)
	}
	for _, want := range []error{nil, net.ErrClosed} {
		if err := unixmsg.Close(to); !errors.Is(err, want) {
			t.Errorf("close: got %v, want %v", err, want)
		}
	}
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

func closeDescriptor(conn *net.UnixConn) error {
	file, err := conn.File()
	if err != nil {
		return err
	}
	fd, err := unix.Dup(int(file.Fd()))
	if err := errors.Join(err, file.Close(), conn.Close()); err != nil {
		return err
	}
	return unixmsg.CloseDescriptor(fd)
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
