// SPDX-License-Identifier: Apache-2.0

package shm

import (
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

// bytesOfFile is what a memory file takes of memory.
func bytesOfFile(t *testing.T, m *Memory) int64 {
	t.Helper()
	var info unix.Stat_t
	if err := unix.Fstat(int(m.File().Fd()), &info); err != nil {
		t.Fatal(err)
	}
	return info.Blocks * 512
}
