// SPDX-License-Identifier: Apache-2.0

package gate

import (
	"bytes"
	"errors"
	"net"
	"os"
	"reflect"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/dmlib/abi"
	"github.com/attune-hpc/attune/internal/beat"
	"github.com/attune-hpc/attune/internal/testing/patience"
)

// Nobody here may stall the gate, crash it or leave anything open (TestMain
// counts).

func TestBrokenClients(t *testing.T) {
	hello := encodeHello(Hello{})
	tests := []struct {
		name string
		talk func(c *client)
		want error
	}{
		{"wrong size", func(c *client) { c.send(hello[:16]) }, ErrProtocol},
		{"too long", func(c *client) { c.send(append(hello[:len(hello):len(hello)], 0)) }, ErrProtocol},
		{"huge", func(c *client) { c.send(bytes.Repeat([]byte{1}, 1<<16)) }, ErrProtocol},
		{"wrong magic", func(c *client) { c.send(make([]byte, abi.HelloBytes)) }, ErrProtocol},
		{"hello with descriptors", func(c *client) {
			_, _, err := c.conn.WriteMsgUnix(make([]byte, abi.HelloBytes), unix.UnixRights(0, 1, 2), nil)
			if errors.Is(err, unix.EPERM) { // Linux 6.16
				c.send(make([]byte, abi.HelloBytes))
			} else if err != nil {
				c.t.Fatal(err)
			}
		}, ErrProtocol},
		{"hello twice", func(c *client) { c.send(hello); c.send(hello) }, ErrProtocol},
		{"ready of wrong size", func(c *client) { c.send(hello); c.send(hello[:8]) }, ErrProtocol},
		{"ready that is a lie", func(c *client) { c.send(hello); c.send(encodeReady(abi.ReadyOK, 0)) }, ErrProtocol},
		{"ready with unknown status", func(c *client) { c.send(hello); c.send(encodeReady(77, 0)) }, ErrProtocol},
		{"does not accept the file", func(c *client) { c.send(hello); c.send(encodeReady(abi.ReadyBadABI, 0)) }, ErrVersion},
		{"never says anything", func(*client) {}, os.ErrDeadlineExceeded},
		{"never says ready", func(c *client) { c.send(hello) }, os.ErrDeadlineExceeded},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			options := Options{geometry: small(), patience: patience.Limit}
			if errors.Is(tt.want, os.ErrDeadlineExceeded) {
				options.patience = 4 * Timeout
			}
			g := mustServe(t, options)
			c := mustDial(t, g)
			tt.talk(c)
			if r := <-g.refused; !errors.Is(r.Err, tt.want) || r.Peer.Pidfd != nil {
				t.Errorf("got %+v, want %v", r, tt.want)
			}
			if len(g.attached) != 0 {
				t.Error("attached")
			}
		})
	}
}

func TestClientsThatLeave(t *testing.T) {
	g := mustServe(t, Options{geometry: small()})
	mustDial(t, g).conn.Close()
	if r := <-g.refused; r.Err == nil {
		t.Error("no reason")
	}
	c := mustDial(t, g)
	c.send(encodeHello(Hello{}))
	c.conn.Close()
	if r := <-g.refused; r.Err == nil {
		t.Error("no reason")
	}
}

// TestLateClientGoesInert: a process that was given a memory file and said
// nothing in time finds it detached.
func TestLateClientGoesInert(t *testing.T) {
	g := mustServe(t, Options{geometry: small(), patience: 20 * Timeout})
	c := mustDial(t, g)
	c.send(encodeHello(Hello{}))
	_, _, file := c.welcome()
	defer file.Close()
	<-g.refused
	b := make([]byte, 256)
	if _, err := file.ReadAt(b, 0); err != nil {
		t.Fatal(err)
	}
	if detached := b[76]; detached != 1 {
		t.Errorf("detached is %d", detached)
	}
}

// TestReadyWhileNobodyLooked: what came in time counts, however late the
// controller reads it.
func TestReadyWhileNobodyLooked(t *testing.T) {
	ours, theirs := mustPair(t)
	if err := ours.SetDeadline(time.Now().Add(-time.Second)); err != nil {
		t.Fatal(err)
	}
	if _, err := theirs.Write(encodeReady(abi.ReadyOK, 0)); err != nil {
		t.Fatal(err)
	}
	if b, err := readMessage(ours, abi.ReadyBytes); err != nil || len(b) != abi.ReadyBytes {
		t.Errorf("got %x, %v", b, err)
	}
}

func mustPair(t *testing.T) (ours, theirs *net.UnixConn) {
	t.Helper()
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	conns := make([]*net.UnixConn, 0, len(fds))
	for _, fd := range fds {
		f := os.NewFile(uintptr(fd), "pair")
		conn, err := net.FileConn(f)
		if err = errors.Join(err, f.Close()); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
		conns = append(conns, conn.(*net.UnixConn))
	}
	return conns[0], conns[1]
}

// TestSilentClientsStallNobody: one process cannot take more than its share of
// places, and they are free again after the timeout.
func TestSilentClientsStallNobody(t *testing.T) {
	g := mustOpen(t, Options{geometry: small(), patience: 40 * Timeout}) // all have come before one's time is over
	const clients = 100
	for range clients {
		mustDial(t, g)
	}
	g.serve(t)
	for range clients - connectionsPerProcess {
		if r := <-g.refused; !errors.Is(r.Err, ErrBusy) {
			t.Fatalf("got %v, want %v", r.Err, ErrBusy)
		}
	}
	for range connectionsPerProcess {
		if r := <-g.refused; !errors.Is(r.Err, os.ErrDeadlineExceeded) {
			t.Fatalf("got %v, want %v", r.Err, os.ErrDeadlineExceeded)
		}
	}
	mustDial(t, g).join(Hello{})
	if err := release(<-g.attached); err != nil {
		t.Error(err)
	}
}

// TestSilentEarlyClientsStallNobody: as at the gate itself.
func TestSilentEarlyClientsStallNobody(t *testing.T) {
	path, early := mustPrepare(t, small())
	const clients = 20
	for range clients {
		mustDialAt(t, path+EarlySocket)
	}
	g := mustServe(t, Options{Path: path, Early: early, geometry: small(), patience: 30 * beat.Interval})
	for n := range clients {
		want := ErrBusy
		if n >= clients-connectionsPerProcess {
			want = ErrProtocol // its time is over
		}
		if r := patience.Receive(t, "refusal", g.refused); !errors.Is(r.Err, want) || errors.Is(r.Err, unix.EAGAIN) || r.Peer.Pidfd != nil {
			t.Fatalf("%d: got %+v, want %v", n, r, want)
		}
	}
	mustDialAt(t, path+EarlySocket).send([]byte("no hello"))
	if r := patience.Receive(t, "word of who leaves nonsense", g.refused); !errors.Is(r.Err, ErrProtocol) {
		t.Errorf("its places are not free again: %v", r.Err)
	}
}

// TestCloseCutsOff: Close does not wait for those who say nothing.
func TestCloseCutsOff(t *testing.T) {
	g := mustServe(t, Options{geometry: small()})
	c := mustDial(t, g)
	c.send(encodeHello(Hello{}))
	_, _, file := c.welcome()
	defer file.Close()
	if err := g.Close(); err != nil {
		t.Fatal(err)
	}
	if r := <-g.refused; errors.Is(r.Err, os.ErrDeadlineExceeded) {
		t.Errorf("Close waited for %v", r.Err)
	}
	c.finish()
}

// TestEmulated: an emulated program has DMLib in its environment, too. Nothing in the
// process may be led to that one's code, which the processor cannot execute.
func TestEmulated(t *testing.T) {
	code := uint64(reflect.ValueOf(TestEmulated).Pointer())
	file, err := os.Open("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	data, err := unix.Mmap(int(file.Fd()), 0, os.Getpagesize(), unix.PROT_READ, unix.MAP_PRIVATE)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unix.Munmap(data) }() // of this test only
	g := mustServe(t, Options{geometry: small()})
	mustDial(t, g).joinAt(Hello{}, code)
	mustAttach(t, g)
	mustDial(t, g).joinAt(Hello{}, uint64(uintptr(unsafe.Pointer(&data[0]))))
	if r := patience.Receive(t, "a refusal", g.refused); !errors.Is(r.Err, ErrTranslated) {
		t.Error(r.Err)
	}
}
