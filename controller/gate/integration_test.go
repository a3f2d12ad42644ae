// SPDX-License-Identifier: Apache-2.0

package gate

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/controller/shm"
	"github.com/attune-hpc/attune/internal/beat"
	"github.com/attune-hpc/attune/internal/clock"
	"github.com/attune-hpc/attune/internal/procid"
	"github.com/attune-hpc/attune/internal/testing/longgate"
	"github.com/attune-hpc/attune/internal/testing/patience"
	"github.com/attune-hpc/attune/internal/testing/targets"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// mustBuild compiles a program of testdata.
func mustBuild(t *testing.T, name string) string {
	t.Helper()
	return targets.Build(t, "testdata/"+name+".c")
}

// target is a program that runs under the real library.
type target struct {
	*targets.Target
	t *testing.T
}

func mustStart(t *testing.T, g *testGate, args ...string) *target {
	t.Helper()
	return mustStartAt(t, g.options.Path, args...)
}

// mustStartAt starts a program that looks for a gate there. More variables may stand before
// its name.
func mustStartAt(t *testing.T, gate string, args ...string) *target {
	t.Helper()
	env := append(KnownFilters(os.Getpid()), "LD_PRELOAD="+longgate.Install(t, t.TempDir()), "ATTUNE_SOCKET="+gate)
	return &target{targets.Launch(t, exec.Command("env", append(env, args...)...)), t}
}

// mustKnow is the variable for a program whose starter is under so many filters more than
// this process.
func mustKnow(t *testing.T, more int) string {
	t.Helper()
	status, err := procid.ReadStatus(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("ATTUNE_FILTERS=%d", status.Filters+more)
}

// finish lets the program end and checks that it ended well.
func (p *target) finish() {
	p.t.Helper()
	if err := p.End(p.t); err != nil {
		p.t.Errorf("the program: %v", err)
	}
}

// mustAttach waits for a process; a refusal that is not expected ends the test.
func mustAttach(t *testing.T, g *testGate) Attachment {
	t.Helper()
	select {
	case a := <-g.attached:
		return released(t, a)
	case r := <-g.refused:
		t.Fatalf("refused: %v", r.Err)
	case <-time.After(patience.Limit):
		t.Fatal("nobody came through the gate")
	}
	panic("unreachable")
}

// released has an attachment released when the test ends.
func released(t *testing.T, a Attachment) Attachment {
	t.Helper()
	t.Cleanup(func() {
		if err := release(a); err != nil {
			t.Error(err)
		}
	})
	return a
}

func mustHook(t *testing.T, name string) int {
	t.Helper()
	h, ok := shm.HookByName(name)
	if !ok {
		t.Fatalf("no hook %s", name)
	}
	return h.Index
}

// TestRealLibraryCountsEveryCall: what the program did is what arrives, from
// before main on, with times that fit and no loss.
func TestRealLibraryCountsEveryCall(t *testing.T) {
	const threads, pairs = 4, 50000
	record, sum := mustHook(t, "aligned_alloc"), mustHook(t, "posix_memalign")
	coming := make(chan Attachment, 1)
	g := mustServe(t, Options{geometry: shm.Geometry{RingRecords: 65536}, Attached: func(a Attachment) {
		if err := errors.Join(
			a.Memory.SetPoint(record, shm.PointControl{Point: 1, Event: true}),
			a.Memory.SetPoint(sum, shm.PointControl{Point: 2, Aggregate: true, Duration: true}),
		); err != nil {
			t.Error(err)
		}
		coming <- a
	}})
	program := mustBuild(t, "allocations")
	ticks := shm.NewClock()
	began := uint64(clock.Monotonic())
	p := mustStart(t, g, program, "4", "50000")
	a := <-coming
	defer func() {
		if err := release(a); err != nil {
			t.Error(err)
		}
	}()
	p.finish()
	ended := uint64(clock.Monotonic())

	perThread, last := map[uint32]int{}, map[uint32]uint64{}
	got := a.Memory.Drain(shm.NewDrainer(ticks), func(batch []byte) {
		for r := range attunev1.AllRecords(batch) {
			when, thread := uint64(r.Monotonic), r.Thread
			perThread[thread]++
			if when < began || when > ended || when < last[thread] {
				t.Fatalf("time %d of thread %d: want %d to %d, and rising", when, thread, began, ended)
			}
			last[thread] = when
		}
	})
	if got.Received != threads*pairs || len(perThread) != threads || got.Lost+got.Unmapped+got.Corrupt != 0 || got.CorruptSlots != 0 {
		t.Errorf("drained %+v of threads %v, want %d of each of %d", got, perThread, pairs, threads)
	}
	aggregates := a.Memory.Aggregates(nil, ticks.Scale())
	if len(aggregates) != 1 || aggregates[0].Count != threads*pairs {
		t.Fatalf("aggregates %+v, want %d hits", aggregates, threads*pairs)
	}
	checkDurations(t, aggregates[0], time.Duration(ended-began)*threads)
}

// checkDurations checks an aggregate of durations that together took at most
// some time.
func checkDurations(t *testing.T, a shm.Aggregate, most time.Duration) {
	t.Helper()
	var hits uint64
	for _, n := range a.Histogram {
		hits += uint64(n)
	}
	if hits != a.Count || a.Sum == 0 || time.Duration(a.Sum) > most || a.Min > a.Sum/a.Count || a.Max < a.Sum/a.Count {
		t.Errorf("aggregate %+v of at most %s", a, most)
	}
}

func TestRealLibraryRunsCommands(t *testing.T) {
	g := mustServe(t, Options{geometry: small()})
	p := mustStart(t, g, mustBuild(t, "allocate"))
	a := mustAttach(t, g)
	ctx := patience.Context(t)
	app := a.Memory.App()
	if app.StubUnbound == 0 {
		t.Error("its stubs lead nowhere")
	}
	store := shm.Command{Op: shm.OpGOT, At: shm.AtAlloc, Args: [8]uint64{0: app.StubTarget, 3: 1}}
	if got, err := a.Memory.Run(ctx, store); !errors.Is(err, unix.EAGAIN) || got.Value != app.StubUnbound || got.Thread != p.PID {
		t.Errorf("got %+v, %v: want the target of a stub, %#x, by the main thread", got, err, app.StubUnbound)
	}
	store.Args[0] = 8 // nothing is mapped there
	if _, err := a.Memory.Run(ctx, store); !errors.Is(err, unix.EFAULT) {
		t.Errorf("got %v, want %v", err, unix.EFAULT)
	}
	short, cancelShort := context.WithTimeout(ctx, 20*time.Millisecond)
	defer cancelShort()
	if _, err := a.Memory.Run(short, shm.Command{Op: shm.OpNop, At: shm.AtLock}); !errors.Is(err, shm.ErrNoSafePoint) {
		t.Errorf("got %v, want %v", err, shm.ErrNoSafePoint)
	}
	p.finish()
}

// TestRealLibraryInLittleAddressSpace: the program comes again for less, until it may
// use the rest itself.
func TestRealLibraryInLittleAddressSpace(t *testing.T) {
	g := mustServe(t, Options{})
	p := mustStart(t, g, "sh", "-c", "ulimit -v 40000; exec "+mustBuild(t, "allocate"))
	shell := released(t, <-g.attached) // by now the refusal may be there as well
	if r := <-g.refused; !errors.Is(r.Err, ErrNoMap) || !errors.Is(r.Err, unix.ENOMEM) {
		t.Errorf("got %v, want %v", r.Err, ErrNoMap)
	}
	if r := <-g.refused; !errors.Is(r.Err, ErrNoMap) {
		t.Errorf("got %v, want %v", r.Err, ErrNoMap)
	}
	a := mustAttach(t, g)
	if a.PID != shell.PID || a.Hello.Attempt != 2 || a.Memory.Geometry().Bytes() > 40000<<10/16 {
		t.Errorf("got %+v with %d bytes", a.Hello, a.Memory.Geometry().Bytes())
	}
	p.finish()
}

// TestRealLibraryLeavesRoom: a program whose address space is limited to a fifth more
// than it needs gets what it needs, at the gate and past it.
func TestRealLibraryLeavesRoom(t *testing.T) {
	program := mustBuild(t, "needs")
	for _, early := range []bool{false, true} {
		g := mustServe(t, Options{geometry: shm.GeometryFor(64, 1)})
		if err := g.SetEarly(early); err != nil {
			t.Fatal(err)
		}
		p := mustStart(t, g, "sh", "-c", "ulimit -v $((200 * 1024 * 12 / 10)); exec "+program+" 200")
		for attached := 0; attached < 2; { // the shell, and the program
			select {
			case a := <-g.attached:
				released(t, a)
				attached++
			case r := <-g.refused:
				if !errors.Is(r.Err, ErrNoMap) {
					t.Error(r.Err)
				}
			}
		}
		p.finish()
	}
}

// nurseChild lets the forked child of a process register, whatever filters it has,
// until the test ends.
func nurseChild(t *testing.T, a Attachment) {
	t.Helper()
	a.Memory.SetNurse(func(int) func() error { return func() error { return nil } })
	ctx, cancel := context.WithCancel(context.Background())
	var work sync.WaitGroup
	t.Cleanup(func() { cancel(); work.Wait() })
	work.Go(func() {
		for ctx.Err() == nil {
			if err := a.Memory.AttendChild(ctx); err != nil {
				t.Error(err)
			}
			beat.Wait(ctx)
		}
	})
}

func TestRealLibraryInForkedChild(t *testing.T) {
	g := mustServe(t, Options{geometry: small()})
	p := mustStart(t, g, mustBuild(t, "allocate"), "fork")
	parent := mustAttach(t, g)
	nurseChild(t, parent)
	child := mustAttach(t, g)
	if child.Hello.Flags&Forked == 0 || child.PID == parent.PID || child.PID != child.Memory.App().PID {
		t.Errorf("got parent %+v, child %+v", parent.Hello, child.Hello)
	}
	p.finish()
}

// TestRealLibraryKilled: what a program had written before it was killed is
// still there, and its slots can be taken back.
func TestRealLibraryKilled(t *testing.T) {
	g := mustServe(t, Options{geometry: shm.Geometry{Slots: 2}})
	p := mustStart(t, g, mustBuild(t, "allocate"))
	a := mustAttach(t, g)
	if err := a.Memory.SetPoint(mustHook(t, "malloc"), shm.PointControl{Point: 1, Event: true}); err != nil {
		t.Fatal(err)
	}
	ctx := patience.Context(t)
	for range 2 { // in between it has allocated
		if _, err := a.Memory.Run(ctx, shm.Command{Op: shm.OpNop, At: shm.AtAlloc}); err != nil {
			t.Fatal(err)
		}
	}
	p.Kill()
	if n := a.Memory.Reclaim(func(tids []int) []int { return tids }); n != 1 {
		t.Errorf("reclaimed %d slots, want 1", n)
	}
	got := a.Memory.Drain(shm.NewDrainer(shm.NewClock()), func([]byte) {})
	if got.Received == 0 || got.CorruptSlots != 0 {
		t.Errorf("drained %+v", got)
	}
}
