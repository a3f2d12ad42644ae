// SPDX-License-Identifier: Apache-2.0

package gate

import (
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/controller/shm"
	"github.com/attune-hpc/attune/internal/peercred"
	"github.com/attune-hpc/attune/internal/procid"
	"github.com/attune-hpc/attune/internal/testing/longgate"
	"github.com/attune-hpc/attune/internal/testing/openfiles"
	"github.com/attune-hpc/attune/internal/testing/patience"
	"github.com/attune-hpc/attune/internal/testing/targets"
)

// mustPrepare makes what stands beside a gate that is not there yet.
func mustPrepare(t *testing.T, g shm.Geometry) (gate string, early *os.File) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "run")
	gate = filepath.Join(dir, "gate.sock")
	if err := errors.Join(os.Mkdir(dir, 0o700), os.WriteFile(gate+EarlyHeaders, shm.Headers(g), 0o600)); err != nil {
		t.Fatal(err)
	}
	listener, err := net.ListenUnix("unixpacket", &net.UnixAddr{Net: "unixpacket", Name: gate + EarlySocket})
	if err != nil {
		t.Fatal(err)
	}
	listener.SetUnlinkOnClose(false)
	early, err = listener.File()
	if err = errors.Join(err, listener.Close()); err != nil {
		t.Fatal(err)
	}
	return gate, early
}

// awaitLeft waits until somebody has left memory, without taking it.
func awaitLeft(t *testing.T, early *os.File) {
	t.Helper()
	poll := []unix.PollFd{{Fd: int32(early.Fd()), Events: unix.POLLIN}}
	n, err := 0, error(unix.EINTR) // by Go's own signals
	for errors.Is(err, unix.EINTR) {
		n, err = unix.Poll(poll, int(patience.Limit.Milliseconds()))
	}
	if n != 1 {
		t.Fatalf("nobody left a memory file: %v", err)
	}
}

func mustRun(t *testing.T, a Attachment) {
	t.Helper()
	if got, err := a.Memory.Run(patience.Context(t), shm.Command{Op: shm.OpNop, At: shm.AtAlloc}); err != nil {
		t.Errorf("got %+v, %v", got, err)
	}
}

// TestEarlyWithoutDescriptors: what was left stays until there are descriptors for it.
func TestEarlyWithoutDescriptors(t *testing.T) {
	ends, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(ends[0])
	defer unix.Close(ends[1])
	pidfd, err := unix.PidfdOpen(os.Getpid(), 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(pidfd)
	hello := encodeHello(Hello{Flags: Early})
	if err := unix.Sendmsg(ends[0], hello, unix.UnixRights(pidfd, pidfd), nil, 0); err != nil {
		t.Fatal(err)
	}
	own := peercred.Peer{PID: os.Getpid()}
	g := &Gate{options: Options{patience: time.Hour}}
	for free := range 3 {
		openfiles.Limit(t, free, func() {
			if g.take(leaving{ends[1], own, time.Now()}) {
				t.Errorf("done with, with %d descriptors for two and one to look at them", free)
			}
		})
	}
	early, err := readEarly(ends[1], own)
	if err != nil || early.hello.Flags != Early {
		t.Fatalf("left is %+v, error %v", early.hello, err)
	}
	early.close()
	_ = early.memory.Close()
}

// TestRealLibraryBeforeItsController: a program that starts first is taken over
// when the gate is served, whatever machine the headers are of (attune pack).
func TestRealLibraryBeforeItsController(t *testing.T) {
	gate, early := mustPrepare(t, shm.GeometryFor(64, 1))
	p := mustStartAt(t, gate, mustBuild(t, "allocate"))
	awaitLeft(t, early)
	g := mustServe(t, Options{Path: gate, Early: early, geometry: small()})
	a := mustAttach(t, g)
	if a.Hello.Flags != Early|Unfiltered || a.PID != p.PID || a.Memory.App().PID != p.PID || !a.Deadline.IsZero() {
		t.Errorf("got %+v of %d, deadline %v", a.Hello, a.PID, a.Deadline)
	}
	if err := unix.PidfdSendSignal(int(a.Pidfd.Fd()), 0, nil, 0); err != nil {
		t.Errorf("pidfd: %v", err)
	}
	mustRun(t, a)
	p.finish()
}

// TestRealLibraryPastTheGate: where nothing has to be in place before main a
// program need not wait, unless it is under filters or must not make such a file.
func TestRealLibraryPastTheGate(t *testing.T) {
	const past = Early | Unfiltered
	program := mustBuild(t, "allocate")
	tests := []struct {
		name    string
		may     bool
		command []string
		want    Flags
	}{
		{"waits", false, []string{program}, 0},
		{"may pass", true, []string{program}, past},
		{"may not any more", false, []string{program}, 0},
		{"may again", true, []string{program}, past},
		{"under a filter", true, []string{mustKnow(t, 1), mustBuild(t, "filtered"), "", program}, 0},
		{"small files only", true, []string{"/bin/sh", "-c", "ulimit -f 1; exec " + program}, 0},
	}
	g := mustServe(t, Options{geometry: small()})
	for _, tt := range tests {
		if err := g.SetEarly(tt.may); err != nil {
			t.Fatal(err)
		}
		p := mustStart(t, g, tt.command...)
		a := mustAttach(t, g)
		if len(tt.command) > 1 { // what executes the program has come, too
			if b := mustAttach(t, g); a.Hello.Flags != tt.want {
				a = b
			}
		}
		if a.Hello.Flags != tt.want || InSandbox(p.PID) || a.PID != p.PID || a.Memory.App().PID != p.PID {
			t.Errorf("%s: %+v of %d, want %d", tt.name, a.Hello, a.PID, tt.want)
		}
		mustRun(t, a)
		p.finish()
	}
}

// TestRealLibraryForkedBeforeItsController: a child that was forked meanwhile registers
// once the controller attends to it.
func TestRealLibraryForkedBeforeItsController(t *testing.T) {
	gate, early := mustPrepare(t, small())
	p := mustStartAt(t, gate, mustBuild(t, "allocate"), "fork")
	awaitLeft(t, early)
	g := mustServe(t, Options{Path: gate, Early: early, geometry: small()})
	parent := mustAttach(t, g)
	nurseChild(t, parent)
	child := mustAttach(t, g)
	if child.Hello.Flags&Forked == 0 || child.PID == parent.PID || child.PID != child.Memory.App().PID {
		t.Errorf("got parent %+v, child %+v", parent.Hello, child.Hello)
	}
	mustRun(t, child)
	p.finish()
}

func TestRealLibraryBeforeItsControllerInLittleAddressSpace(t *testing.T) {
	gate, early := mustPrepare(t, shm.Geometry{})
	limited := exec.Command("sh", "-c", "ulimit -v 40000; exec env "+mustKnow(t, 0)+" LD_PRELOAD="+longgate.Install(t, t.TempDir())+" ATTUNE_SOCKET="+gate+" "+mustBuild(t, "allocate"))
	p := &target{targets.Launch(t, limited), t}
	awaitLeft(t, early)
	g := mustServe(t, Options{Path: gate, Early: early})
	a := mustAttach(t, g)
	if a.Hello.Attempt == 0 || a.Memory.Geometry().Bytes() >= (shm.Geometry{}).Bytes() {
		t.Errorf("got %+v with %d bytes", a.Hello, a.Memory.Geometry().Bytes())
	}
	mustRun(t, a)
	p.finish()
}

// TestNobodyComes: the program runs on, with memory or without.
func TestNobodyComes(t *testing.T) {
	gate, early := mustPrepare(t, small())
	p := mustStartAt(t, gate, mustBuild(t, "allocate"))
	awaitLeft(t, early)
	if err := early.Close(); err != nil {
		t.Fatal(err)
	}
	p.finish()
	mustStartAt(t, gate, mustBuild(t, "allocate")).finish()
}

// TestEarlyProcessHasEnded: its pid may be another's by now, or nobody has waited
// for it yet.
func TestEarlyProcessHasEnded(t *testing.T) {
	for name, end := range map[string]func(*target){
		"waited for": (*target).finish,
		"zombie": func(p *target) {
			p.CloseInput()
			if err := unix.Waitid(unix.P_PID, p.PID, nil, unix.WEXITED|unix.WNOWAIT, nil); err != nil {
				p.t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			gate, early := mustPrepare(t, small())
			p := mustStartAt(t, gate, mustBuild(t, "allocate"))
			awaitLeft(t, early)
			end(p)
			g := mustServe(t, Options{Path: gate, Early: early, geometry: small()})
			if r := <-g.refused; !errors.Is(r.Err, procid.ErrGone) || r.Peer.PID != p.PID || r.Peer.Pidfd != nil {
				t.Errorf("got %+v", r)
			}
		})
	}
}

func TestBrokenEarlyClients(t *testing.T) {
	sleeper := exec.Command("sleep", "100")
	if err := sleeper.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = sleeper.Process.Kill(), sleeper.Wait() })
	own, other := mustPidfdOf(t, os.Getpid()), mustPidfdOf(t, sleeper.Process.Pid)
	unsealed, err := unix.MemfdCreate(shm.FileName, unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(unsealed)
	unready, err := shm.New(small())
	if err != nil {
		t.Fatal(err)
	}
	defer unready.Close()
	memory := int(unready.File().Fd())
	hello := encodeHello(Hello{Flags: Early})
	tests := []struct {
		name  string
		hello []byte
		files []int
		want  error
	}{
		{"no files", hello, nil, ErrProtocol},
		{"no pidfd", hello, []int{memory}, ErrProtocol},
		{"another's pidfd", hello, []int{memory, other}, ErrProtocol},
		{"not early", encodeHello(Hello{}), []int{memory, own}, ErrProtocol},
		{"short", hello[:8], []int{memory, own}, ErrProtocol},
		{"long", append(hello[:len(hello):len(hello)], 0), []int{memory, own}, ErrProtocol},
		{"unsealed", hello, []int{unsealed, own}, shm.ErrForeign},
		{"pidfd as memory", hello, []int{own, own}, shm.ErrForeign},
		{"not ready", hello, []int{memory, own}, ErrProtocol},
	}
	gate, early := mustPrepare(t, small())
	g := mustServe(t, Options{Path: gate, Early: early, geometry: small()})
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			conn, err := net.DialUnix("unixpacket", nil, &net.UnixAddr{Net: "unixpacket", Name: gate + EarlySocket})
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			if _, _, err := conn.WriteMsgUnix(tt.hello, unix.UnixRights(tt.files...), nil); err != nil {
				t.Fatal(err)
			}
			if r := <-g.refused; !errors.Is(r.Err, tt.want) || r.Peer.Pidfd != nil {
				t.Errorf("got %+v, want %v", r, tt.want)
			}
		})
	}
}

func mustPidfdOf(t *testing.T, pid int) int {
	t.Helper()
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Close(fd) })
	return fd
}

// TestSlowEarlyClients connect long before they leave something.
func TestSlowEarlyClients(t *testing.T) {
	path, early := mustPrepare(t, small())
	g := mustServe(t, Options{Path: path, Early: early, geometry: small(), patience: time.Hour})
	slow, quick := mustDialAt(t, path+EarlySocket), mustDialAt(t, path+EarlySocket)
	for _, client := range []*client{quick, slow} { // quick's turn is after slow is out of the queue
		client.send([]byte("no hello"))
		if r := patience.Receive(t, "word of who leaves nonsense", g.refused); !errors.Is(r.Err, ErrProtocol) {
			t.Errorf("who left nonsense: %+v", r)
		}
	}
}
