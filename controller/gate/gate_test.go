// SPDX-License-Identifier: Apache-2.0

package gate

import (
	"context"
	"encoding/binary"
	"errors"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/controller/internal/dmtest"
	"github.com/attune-hpc/attune/controller/shm"
	"github.com/attune-hpc/attune/dmlib/abi"
	"github.com/attune-hpc/attune/internal/clock"
	"github.com/attune-hpc/attune/internal/peercred"
	"github.com/attune-hpc/attune/internal/testing/files"
	"github.com/attune-hpc/attune/internal/testing/longgate"
)

func small() shm.Geometry { return shm.Geometry{Slots: 8, Rings: 4, RingRecords: 1024} }

func TestAttach(t *testing.T) {
	g := mustServe(t, Options{geometry: small()})
	c := mustDial(t, g)
	app := c.join(Hello{})
	a := <-g.attached
	if a.PID != os.Getpid() || a.UID != os.Geteuid() || a.GID != os.Getegid() {
		t.Errorf("peer %+v is not this process", a.Peer)
	}
	if left := time.Until(a.Deadline); left <= 0 || left > longgate.Limit {
		t.Errorf("%s left to place points", left)
	}
	if err := unix.PidfdSendSignal(int(a.Pidfd.Fd()), 0, nil, 0); err != nil {
		t.Errorf("pidfd: %v", err)
	}
	if b := c.finish(); len(b) != abi.GoBytes || binary.LittleEndian.Uint64(b) != abi.ABIMagic {
		t.Errorf("go is %x", b)
	}
	useMemory(t, a, app.Claim(77, 0).Record)
	if err := release(a); err != nil {
		t.Error(err)
	}
}

// TestDeadlineIsTheProcess: the process may have waited for long before it is met.
func TestDeadlineIsTheProcess(t *testing.T) {
	const second = 1000 // milliseconds
	for _, row := range []struct {
		name        string
		told        int32         // from now on, milliseconds
		least, most time.Duration // left; most 0: it waits no longer
	}{
		{"waited for a while", 15 * second, time.Second, 15 * time.Second},
		{"waited for too long", 0, 0, 0},
		{"waited for far too long", -second, 0, 0},
		{"another clock", 1e6 * second, 15 * time.Second, longgate.Limit},
	} {
		t.Run(row.name, func(t *testing.T) {
			g := mustServe(t, Options{geometry: small(), Timeout: longgate.Limit})
			c := mustDial(t, g)
			c.join(Hello{Deadline: uint32(int32(clock.Monotonic().Milliseconds()) + row.told)})
			a := <-g.attached
			left := time.Until(a.Deadline)
			if row.most == 0 && !a.Deadline.IsZero() || row.most != 0 && (left < row.least || left > row.most) {
				t.Errorf("%v left, want %v to %v", left, row.least, row.most)
			}
			c.finish()
			if err := release(a); err != nil {
				t.Error(err)
			}
		})
	}
}

// useMemory proves that both sides have the same memory.
func useMemory(t *testing.T, a Attachment, record func(time uint64, point, flags uint16, value, extra uint64) bool) {
	t.Helper()
	if err := a.Memory.SetPoint(0, shm.PointControl{Point: 3, Event: true}); err != nil {
		t.Fatal(err)
	}
	record(1, 0, 0, 5, 6)
	got := a.Memory.Drain(shm.NewDrainer(shm.NewClock()), func([]byte) {})
	if got.Received != 1 {
		t.Errorf("drained %+v, want one record", got)
	}
}

// TestPointsAreInPlaceBeforeGo: the process is held while Attached runs.
func TestPointsAreInPlaceBeforeGo(t *testing.T) {
	memories := make(chan Attachment, 1)
	g := mustServe(t, Options{geometry: small(), Attached: func(a Attachment) {
		if err := a.Memory.SetPoint(2, shm.PointControl{Point: 1, Event: true}); err != nil {
			t.Error(err)
		}
		memories <- a
	}})
	c := mustDial(t, g)
	app := c.join(Hello{})
	if b := c.finish(); len(b) != abi.GoBytes {
		t.Fatalf("go is %x", b)
	}
	if app.Control(2) == 0 {
		t.Error("the point is not in place")
	}
	if err := release(<-memories); err != nil {
		t.Error(err)
	}
}

// TestGoComesWithTheMemory: where nothing has to be in place before main, the
// process need not wait for anybody to look at its ready.
func TestGoComesWithTheMemory(t *testing.T) {
	g := mustServe(t, Options{geometry: small(), Hold: func(peercred.Peer) bool { return false }})
	c := mustDial(t, g)
	c.send(encodeHello(Hello{}))
	_, _, file := c.welcome()
	b := make([]byte, 256)
	if n, err := c.conn.Read(b); err != nil || n != abi.GoBytes {
		t.Fatalf("%d bytes before ready, %v, want go", n, err)
	}
	app := dmtest.Map(t, file.Fd())
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
	app.Ready(os.Getpid())
	c.send(encodeReady(abi.ReadyOK, 0))
	if b := c.finish(); len(b) != 0 {
		t.Errorf("the gate went on with %x", b)
	}
	a := <-g.attached
	if !a.Deadline.IsZero() {
		t.Errorf("deadline %v of a process that does not wait", a.Deadline)
	}
	if flags, err := unix.FcntlInt(a.Pidfd.Fd(), unix.F_GETFD, 0); err != nil || flags&unix.FD_CLOEXEC == 0 {
		t.Errorf("pidfd with flags %#x, %v: programs started by the controller would inherit it", flags, err)
	}
	if err := release(a); err != nil {
		t.Error(err)
	}
}

func TestForkedChildGetsNoGo(t *testing.T) {
	g := mustServe(t, Options{geometry: small()})
	c := mustDial(t, g)
	c.join(Hello{Flags: Forked})
	if b := c.finish(); len(b) != 0 {
		t.Errorf("go is %x", b)
	}
	a := <-g.attached
	if a.Hello.Flags != Forked || !a.Deadline.IsZero() {
		t.Errorf("got %+v", a)
	}
	if err := release(a); err != nil {
		t.Error(err)
	}
}

func TestSmallerMemoryForLaterAttempts(t *testing.T) {
	g := mustServe(t, Options{})
	var last uint64 = math.MaxUint64
	for attempt := range uint32(3) {
		c := mustDial(t, g)
		c.send(encodeHello(Hello{Attempt: attempt}))
		_, size, file := c.welcome()
		if file == nil || size >= last {
			t.Fatalf("attempt %d: %d bytes after %d", attempt, size, last)
		}
		last = size
		if err := file.Close(); err != nil {
			t.Fatal(err)
		}
		c.send(encodeReady(abi.ReadyNoMap, unix.ENOMEM))
		if r := <-g.refused; !errors.Is(r.Err, ErrNoMap) || !errors.Is(r.Err, unix.ENOMEM) {
			t.Errorf("got %+v", r)
		}
		c.finish()
	}
	if last > 2<<20 {
		t.Errorf("the third memory file still has %d bytes", last)
	}
}

func TestRefusal(t *testing.T) {
	errNo := errors.New("not this one")
	tests := []struct {
		name    string
		options Options
		hello   []byte
		want    error
	}{
		{"not admitted, whatever it would say", Options{Admit: func(peercred.Peer) error { return errNo }}, nil, errNo},
		{"no smaller file", Options{}, encodeHello(Hello{Attempt: math.MaxUint32}), ErrNoMap},
		{"other version", Options{}, append(encodeHello(Hello{})[:abi.HelloVersionAt], append([]byte{abi.ABIVersion + 1, 0, 0, 0}, make([]byte, 20)...)...), ErrVersion},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			g := mustServe(t, tt.options)
			c := mustDial(t, g)
			if tt.hello != nil {
				c.send(tt.hello)
			}
			if status, _, file := c.welcome(); status != abi.WelcomeRefused || file != nil {
				t.Errorf("status %d, file %v", status, file)
			}
			if r := <-g.refused; !errors.Is(r.Err, tt.want) || r.Peer.PID != os.Getpid() || r.Peer.Pidfd != nil {
				t.Errorf("got %+v, want %v", r, tt.want)
			}
		})
	}
}

func TestAdmitOwn(t *testing.T) {
	if err := admitOwn(peercred.Peer{UID: os.Geteuid()}); err != nil {
		t.Error(err)
	}
	if err := admitOwn(peercred.Peer{UID: os.Geteuid() + 1}); !errors.Is(err, ErrNotAdmitted) {
		t.Errorf("got %v", err)
	}
}

func TestNewRefuses(t *testing.T) {
	open := filepath.Join(t.TempDir(), "open")
	if err := os.Mkdir(open, 0o755); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "file")
	files.Write(t, file, "", 0o600)
	tests := []struct {
		name    string
		options Options
		want    string
	}{
		{"no path", Options{}, "socket path"},
		{"long path", Options{Path: "/tmp/" + strings.Repeat("x", 120)}, "socket path"},
		{"open folder", Options{Path: open + "/s"}, "make it 0700"},
		{"no folder", Options{Path: file + "/s"}, "folder"},
		{"parent missing", Options{Path: open + "/a/b/s"}, "folder"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			g, err := New(tt.options)
			if err == nil {
				t.Fatal("New took it", g.Close())
			}
			if !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
		})
	}
}

func TestSocketMode(t *testing.T) {
	tests := []struct {
		name string
		mode fs.FileMode
		want fs.FileMode
	}{
		{"default", 0, 0o600},
		{"for others", 0o666, 0o666},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			g := mustServe(t, Options{Mode: tt.mode})
			info, err := os.Stat(g.options.Path)
			if err != nil || info.Mode().Perm() != tt.want {
				t.Fatalf("mode %v, %v; want %v", info.Mode(), err, tt.want)
			}
			folder, err := os.Stat(filepath.Dir(g.options.Path))
			if err != nil || folder.Mode().Perm() != 0o700 {
				t.Errorf("mode of the folder %v, %v", folder.Mode(), err)
			}
			if err := g.Close(); err != nil {
				t.Error(err)
			}
			if _, err := os.Stat(g.options.Path); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("the socket is still there: %v", err)
			}
		})
	}
}

func TestServeEndsWithContext(t *testing.T) {
	g, err := New(Options{Path: filepath.Join(t.TempDir(), "run", "s")})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := errors.Join(g.Serve(ctx), g.Close()); err != nil {
		t.Error(err)
	}
}
