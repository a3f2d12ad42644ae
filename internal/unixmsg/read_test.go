// SPDX-License-Identifier: Apache-2.0

package unixmsg_test

import (
	"errors"
	"io"
	"net"
	"os"
	"syscall"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/internal/testing/leaktest"
	"github.com/attune-hpc/attune/internal/testing/openfiles"
	"github.com/attune-hpc/attune/internal/unixmsg"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

func mustPair(t *testing.T) (from, to *net.UnixConn) {
	t.Helper()
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	var ends [2]*net.UnixConn
	for i, fd := range fds {
		file := os.NewFile(uintptr(fd), "pair")
		conn, err := net.FileConn(file)
		if err = errors.Join(err, file.Close()); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
		ends[i] = conn.(*net.UnixConn)
	}
	return ends[0], ends[1]
}

func TestRead(t *testing.T) {
	tests := []struct {
		name  string
		text  string
		files int
		want  int // bytes, or the error
		err   error
	}{
		{"without descriptors", "word", 0, 4, nil},
		{"with two", "word", 2, 4, nil},
		{"with three", "word", 3, 0, unixmsg.ErrTooManyFiles},
		{"too long", "words", 1, 5, nil},
		{"much too long", "words and more of them", 1, 5, nil},
		{"hung up", "", 0, 0, io.EOF},
	}
	for n := range 2 * len(tests) {
		tt, read, kind := tests[n/2], unixmsg.Read, "connection"
		if n%2 == 1 {
			read, kind = peek, "descriptor"
		}
		t.Run(tt.name+", "+kind, func(t *testing.T) {
			from, to := mustPair(t)
			rights := unix.UnixRights([]int{0, 1, 2}[:tt.files]...)
			if tt.text == "" {
				from.Close()
			} else if _, _, err := from.WriteMsgUnix([]byte(tt.text), rights, nil); err != nil {
				t.Fatal(err)
			}
			message, files, err := read(to, 4, 2)
			for _, file := range files {
				if flags, err := unix.FcntlInt(file.Fd(), unix.F_GETFD, 0); err != nil || flags&unix.FD_CLOEXEC == 0 {
					t.Errorf("flags %#x, %v: a child would inherit it", flags, err)
				}
				file.Close()
			}
			if !errors.Is(err, tt.err) || len(message) != tt.want {
				t.Errorf("%d bytes, %v; want %d, %v", len(message), err, tt.want, tt.err)
			}
			if err == nil && len(files) != tt.files {
				t.Errorf("%d files, want %d", len(files), tt.files)
			}
		})
	}
}

// Descriptors of a packet without bytes are had or closed like those of any other.
func TestDescriptorsOfAnEmptyPacket(t *testing.T) {
	for _, row := range []struct {
		kind string
		read func(*net.UnixConn, int, int) ([]byte, []*os.File, error)
		none error // if none may come
	}{{"connection", unixmsg.Read, unixmsg.ErrUnwanted}, {"descriptor", peek, unixmsg.ErrTooManyFiles}} {
		t.Run(row.kind, func(t *testing.T) {
			for most, want := range []error{row.none, nil} {
				from, to := mustPair(t)
				mustSendEmpty(t, from, unix.UnixRights(0))
				before := openfiles.Count(t)
				message, files, err := row.read(to, 4, most)
				if len(message) != 0 || len(files) != most || !errors.Is(err, want) {
					t.Errorf("%d bytes, %d files, %v; want no bytes, %d files, %v", len(message), len(files), err, most, want)
				}
				for _, file := range files {
					file.Close()
				}
				if after := openfiles.Count(t); after != before {
					t.Errorf("%d descriptors before, %d after", before, after)
				}
			}
		})
	}
}

// mustSendEmpty sends a packet of no bytes, to which Go would add one.
func mustSendEmpty(t *testing.T, conn *net.UnixConn, rights []byte) {
	t.Helper()
	raw, err := conn.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	header := unix.Msghdr{Control: &rights[0]}
	header.SetControllen(len(rights))
	var errno syscall.Errno
	failed := raw.Control(func(fd uintptr) {
		_, _, errno = unix.Syscall(unix.SYS_SENDMSG, fd, uintptr(unsafe.Pointer(&header)), 0)
	})
	if failed != nil || errno != 0 {
		t.Fatal(failed, errno)
	}
}

// peek is Peek with the descriptor of a connection.
func peek(conn *net.UnixConn, size, maxFiles int) (message []byte, files []*os.File, err error) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return nil, nil, err
	}
	failed := raw.Control(func(fd uintptr) { message, files, err = unixmsg.Peek(int(fd), size, maxFiles) })
	return message, files, errors.Join(err, failed)
}

func TestNothingToPeek(t *testing.T) {
	_, to := mustPair(t)
	if _, _, err := peek(to, 4, 0); !errors.Is(err, unix.EAGAIN) {
		t.Errorf("got %v", err)
	}
}

// A packet whose descriptors could not be had is there still.
func TestPeekWithoutDescriptors(t *testing.T) {
	from, to := mustPair(t)
	if _, _, err := from.WriteMsgUnix([]byte("word"), unix.UnixRights(0, 1), nil); err != nil {
		t.Fatal(err)
	}
	for free := range 2 {
		openfiles.Limit(t, free, func() {
			if _, _, err := peek(to, 4, 2); !errors.Is(err, unix.EMFILE) {
				t.Errorf("with %d descriptors for two: %v", free, err)
			}
		})
	}
	message, files, err := peek(to, 4, 2)
	if string(message) != "word" || len(files) != 2 || err != nil {
		t.Errorf("read %q with %d descriptors, error %v", message, len(files), err)
	}
	for _, file := range files {
		file.Close()
	}
}
