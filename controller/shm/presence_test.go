// SPDX-License-Identifier: Apache-2.0

package shm

import (
	"os"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/controller/internal/dmtest"
	"github.com/attune-hpc/attune/dmlib/abi"
)

// TestNothingIsFilled: an application that claims to have used memory that it has not touched
// has the controller take none for it.
func TestNothingIsFilled(t *testing.T) {
	const most = 64 << 10 // what the controller writes itself
	g := Geometry{Slots: 64, Rings: 64, RingRecords: 4096, Programs: 3, Tables: 2}
	claimAll := func(app *dmtest.App) {
		for i := range g.Slots {
			*app.SlotWord(i, abi.SlotStateAt) = abi.SlotClosed
		}
		*app.U32(abi.HeaderSlotsUsedAt) = uint32(g.Slots)
	}
	for _, tt := range []struct {
		name    string
		points  []int // local
		control PointControl
		forge   func(app *dmtest.App)
		corrupt int
	}{
		{"rings", nil, PointControl{}, func(app *dmtest.App) {
			for i := range g.Slots {
				*app.SlotWord(i, abi.SlotRingAt) = uint32(i + 1)
				*app.SlotLong(i, abi.SlotHeadAt) = uint64(g.RingRecords)
			}
			claimAll(app)
		}, g.Rings},
		{"slots", nil, PointControl{}, func(app *dmtest.App) { *app.U32(abi.HeaderSlotsUsedAt) = uint32(g.Slots) }, 0},
		{"common slot", []int{0, 20, PointCount - 1}, PointControl{Point: 1, Aggregate: true}, func(app *dmtest.App) {
			*app.U32(abi.HeaderCommonUsedAt) = 1
		}, 0},
		{"aggregates", []int{20, 60, PointCount - 1}, PointControl{Point: 1, Aggregate: true}, claimAll, 0},
		{"keys", []int{0}, PointControl{Point: 1, Aggregate: true, Program: mustProgram(t, 1000)}, func(*dmtest.App) {}, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m, app := mustApp(t, g)
			for _, local := range tt.points {
				mustSet(t, m, local, tt.control)
			}
			tt.forge(app)
			before := bytesOfFile(t, m)
			corrupt := m.Drain(NewDrainer(steadyClock()), func([]byte) { t.Error("records that nobody has written") }).CorruptSlots
			m.Aggregates(nil, Scale{})
			m.Reclaim(func([]int) []int { return nil })
			if corrupt != tt.corrupt {
				t.Errorf("%d corrupt slots, want %d", corrupt, tt.corrupt)
			}
			if more := bytesOfFile(t, m) - before; more > most {
				t.Errorf("the controller has filled %d bytes of the file, want %d at most", more, most)
			}
		})
	}
}

// TestHolesAreAskedForOnce: what threads have not touched costs no system call for each part
// that could be there, however often it is read.
func TestHolesAreAskedForOnce(t *testing.T) {
	const threads, points = 64, 50
	m, app := mustApp(t, Geometry{Slots: threads, Rings: 1, RingRecords: 64})
	for local := range points {
		mustSet(t, m, local, PointControl{Point: uint16(local + 1), Aggregate: true})
	}
	first := app.Claim(1, 0)
	for i := 1; i < threads; i++ {
		app.Claim(i+1, i)
	}
	asked := countQuestions(m)
	for reading := range 3 {
		for local := range points {
			first.Count(local, 1)
		}
		*asked = 0
		got := m.Aggregates(nil, Scale{})
		// Before the next interval begins, and to read; the first time also for what the first has touched.
		if most := 2 * threads; reading > 0 && *asked > most {
			t.Errorf("asked %d times, want %d at most for %d threads", *asked, most, threads)
		}
		for i, a := range got {
			if len(got) != points || a.Point != uint16(i+1) || a.Count != 1 {
				t.Fatalf("%d of %d: %+v", i, len(got), a)
			}
		}
	}
}

// TestUnclaimedSlotsAreAskedForOnce: an application that claims to have used all slots makes
// a reading no dearer.
func TestUnclaimedSlotsAreAskedForOnce(t *testing.T) {
	m, app := mustApp(t, Geometry{Slots: maxSlots, Rings: 1, RingRecords: 64})
	*app.U32(abi.HeaderSlotsUsedAt) = maxSlots
	asked := countQuestions(m)
	m.Drain(NewDrainer(steadyClock()), func([]byte) {})
	m.Reclaim(func([]int) []int { return nil })
	if *asked > 3 { // heads, slots and threads
		t.Errorf("asked %d times, want 3 at most", *asked)
	}
}

// countQuestions returns how often the kernel is asked from now on what is there.
func countQuestions(m *Memory) *int {
	asked := new(int)
	m.seek = func(file *os.File, at int) (int, error) {
		*asked++
		return seekData(file, at)
	}
	return asked
}

// bytesOfFile is what a memory file takes of memory.
func bytesOfFile(t *testing.T, m *Memory) int64 {
	t.Helper()
	var info unix.Stat_t
	if err := unix.Fstat(int(m.File().Fd()), &info); err != nil {
		t.Fatal(err)
	}
	return info.Blocks * 512
}
