// SPDX-License-Identifier: Apache-2.0

package dmtest

import (
	"sync/atomic"

	"github.com/attune-hpc/attune/dmlib/abi"
)

// Program returns the bytes of the program that the control of a local point
// names.
func (a *App) Program(point int) []byte {
	number := uint64(*a.u32(a.control(point, abi.PointControlProgramAt)) & 0xffff)
	at := *a.U64(abi.HeaderProgramOffsetAt) + number*abi.ProgramSlotBytes
	return a.Data[at : at+abi.ProgramBytes]
}

// Unreadable counts a hit of a local point whose value could not be read.
func (a *App) Unreadable(point int) {
	number := uint64(*a.u32(a.control(point, abi.PointControlProgramAt)) & 0xffff)
	at := *a.U64(abi.HeaderProgramOffsetAt) + number*abi.ProgramSlotBytes
	atomic.AddUint64(a.u64(at+abi.ProgramSlotUnreadableAt), 1)
}

// CountKey adds a value to the aggregate of a key, which gets the place after all
// others that have one; key 0 has the first for itself.
func (a *App) CountKey(table int, key, value uint64) {
	at := a.table(table) + abi.TablePlaceAt
	named := max(key, 1)
	for place := at; ; place += abi.AggregateBytes {
		stored := a.u64(place + abi.AggregateKeyAt)
		if (key == 0) == (place == at) && (*stored == 0 || *stored == named) {
			atomic.StoreUint64(stored, named)
			a.count(place, value)
			return
		}
	}
}

// CountRest adds a value to the aggregate of the keys without a place.
func (a *App) CountRest(table int, value uint64) {
	a.count(a.table(table)+abi.TableRestAt, value)
}

func (a *App) table(number int) uint64 {
	return *a.U64(abi.HeaderTableOffsetAt) + uint64(number)*abi.TableBytes
}
