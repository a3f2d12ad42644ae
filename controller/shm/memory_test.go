// SPDX-License-Identifier: Apache-2.0

package shm

import (
	"errors"
	"math/bits"
	"os"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/dmlib/abi"
	"github.com/attune-hpc/attune/internal/testing/patience"
)

func TestGeometrySmaller(t *testing.T) {
	g, steps := Geometry{}, []int64{Geometry{}.Bytes()}
	for {
		smaller, ok := g.Smaller()
		if !ok {
			break
		}
		if bits.OnesCount(uint(smaller.RingRecords)) != 1 {
			t.Fatalf("%+v: DMLib wants a power of two", smaller)
		}
		if smaller.Bytes() >= g.Bytes() || len(steps) > 10 {
			t.Fatalf("%+v (%d bytes) is not smaller than %+v", smaller, smaller.Bytes(), g)
		}
		g, steps = smaller, append(steps, smaller.Bytes())
	}
	// DMLib makes three attempts: the last must be modest.
	if len(steps) < 3 || steps[0] > 160<<20 || steps[2] > 2<<20 {
		t.Errorf("sizes %d", steps)
	}
}

func TestNewFile(t *testing.T) {
	m, app := mustApp(t, small())
	if diff := cmp.Diff(small(), m.Geometry()); diff != "" {
		t.Error(diff)
	}
	fd := m.File().Fd()
	seals, err := unix.FcntlInt(fd, unix.F_GET_SEALS, 0)
	if want := unix.F_SEAL_SHRINK | unix.F_SEAL_GROW | unix.F_SEAL_SEAL; err != nil || seals&want != want {
		t.Errorf("seals %#x, %v: want %#x", seals, err, want)
	}
	if err := m.File().Truncate(0); !errors.Is(err, unix.EPERM) {
		t.Errorf("shrink: got %v, want EPERM", err)
	}
	if flags, err := unix.FcntlInt(fd, unix.F_GETFD, 0); err != nil || flags&unix.FD_CLOEXEC == 0 {
		t.Errorf("the file survives exec: flags %#x, %v", flags, err)
	}
	if got, want := *app.U64(abi.HeaderMagicAt), uint64(abi.ABIMagic); got != want {
		t.Errorf("magic %#x, want %#x", got, want)
	}
	if got := *app.U64(abi.HeaderTotalSizeAt); got != uint64(len(app.Data)) {
		t.Errorf("total size %d of a file of %d", got, len(app.Data))
	}
}

// TestSealOfAShrinkingFile: the process whose file it is may shrink it until the seals
// are on, and an access behind the end that they fix would kill this process. So a file
// is whole or refused.
func TestSealOfAShrinkingFile(t *testing.T) {
	patience.Until(t, "a file that shrank before its seals came", func() bool {
		size, err := sealShrinking(t)
		if err == nil && size != small().Bytes() {
			t.Fatalf("sealed with %d bytes of %d", size, small().Bytes())
		}
		if err != nil && !errors.Is(err, ErrForeign) {
			t.Fatal(err)
		}
		return err != nil
	})
}

// sealShrinking seals a file while its process takes all from it over and over, and
// returns the size that it has for good.
func sealShrinking(t *testing.T) (size int64, err error) {
	t.Helper()
	fd, err := memfd(FileName)
	if err != nil {
		t.Fatal(err)
	}
	file := os.NewFile(uintptr(fd), FileName)
	defer file.Close()
	var process sync.WaitGroup
	var sealed atomic.Bool
	process.Go(func() {
		for !sealed.Load() {
			_ = file.Truncate(0) // refused once the seals are on
		}
	})
	err = seal(file, small().Bytes(), false)
	sealed.Store(true)
	process.Wait()
	var info unix.Stat_t
	if err := unix.Fstat(int(file.Fd()), &info); err != nil {
		t.Fatal(err)
	}
	return info.Size, err
}

// TestFileIsSparse: a process with few threads must not cost what one with
// many may need.
func TestFileIsSparse(t *testing.T) {
	m := mustNew(t, Geometry{})
	d := NewDrainer(steadyClock())
	for range 10 {
		m.Drain(d, func([]byte) {})
	}
	m.Aggregates(nil, Scale{})
	var info unix.Stat_t
	if err := unix.Fstat(int(m.File().Fd()), &info); err != nil {
		t.Fatal(err)
	}
	if used := info.Blocks * 512; used > 2<<20 {
		t.Errorf("%d bytes of %d allocated before anything happened", used, info.Size)
	}
}

func TestApp(t *testing.T) {
	m, app := mustApp(t, small())
	if got := m.App(); got.Ready {
		t.Error("ready before the application said so")
	}
	*app.U64(abi.HeaderDMLIBBaseAt), *app.U64(abi.HeaderStubEntryAt) = 0x1000, 0x2000
	*app.U64(abi.HeaderStubTargetAt) = 0x3000
	*app.U32(abi.HeaderStubSizeAt), *app.U32(abi.HeaderStubCountAt) = 16, 1<<31
	*app.U64(abi.HeaderLostNoSlotAt) = 5
	app.Ready(os.Getpid())
	want := App{
		PID: os.Getpid(), Ready: true, Base: 0x1000, StubEntry: 0x2000, StubTarget: 0x3000,
		StubSize: 16, StubCount: StubCount, LostNoSlot: 5,
	}
	if diff := cmp.Diff(want, m.App()); diff != "" {
		t.Error(diff)
	}
}

func TestDetach(t *testing.T) {
	m, app := mustApp(t, small())
	mustSet(t, m, 0, PointControl{Point: 1, Event: true})
	m.Detach()
	if *app.U32(abi.HeaderDetachedAt) != 1 || app.Control(0) != 0 {
		t.Errorf("detached %d, control word %#x", *app.U32(abi.HeaderDetachedAt), app.Control(0))
	}
}

func TestAfterClose(t *testing.T) {
	m, app := mustApp(t, small())
	if err := errors.Join(m.Close(), m.Close()); err != nil {
		t.Fatal(err)
	}
	if *app.U32(abi.HeaderDetachedAt) != 1 {
		t.Error("the application was not told")
	}
	m.Detach()
	m.ClearPoint(0)
	if err := m.SetPoint(0, PointControl{Point: 1, Event: true}); !errors.Is(err, ErrClosed) {
		t.Errorf("SetPoint: %v", err)
	}
	if got := m.Drain(NewDrainer(steadyClock()), nil); got != (Drained{}) {
		t.Errorf("Drain: %+v", got)
	}
	if got := m.Reclaim(nil); got != 0 {
		t.Errorf("Reclaim: %d", got)
	}
	if got := m.Aggregates(nil, Scale{}); got != nil {
		t.Errorf("Aggregates: %v", got)
	}
	if got := m.App(); got != (App{}) {
		t.Errorf("App: %+v", got)
	}
	if _, err := m.Post(Command{At: atAny}); !errors.Is(err, ErrClosed) {
		t.Errorf("Post: %v", err)
	}
}
