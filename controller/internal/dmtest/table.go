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

// CountKey adds a value to the aggregate of a key, which gets the bucket after
// all others that have one; key 0 and the rest have aggregates of their own.
func (a *App) CountKey(table int, key, value uint64) {
	at := a.table(table)
	if key == 0 {
		*a.u32(at + abi.TableZeroAt) = 1
		a.countKeyed(at+abi.TableOfZeroAt, value)
		return
	}
	for i := uint64(0); ; i++ {
		stored := a.u64(at + abi.TableKeyAt + 8*i)
		if *stored == 0 || *stored == key {
			*stored = key
			a.countKeyed(at+abi.TableBucketAt+i*abi.KeyedBytes, value)
			return
		}
	}
}

// CountRest adds a value to the aggregate of the keys without a place.
func (a *App) CountRest(table int, value uint64) {
	a.countKeyed(a.table(table)+abi.TableRestAt, value)
}

func (a *App) table(number int) uint64 {
	return *a.U64(abi.HeaderTableOffsetAt) + uint64(number)*abi.TableBytes
}

func (a *App) countKeyed(at, value uint64) {
	parity := 8 * uint64(*a.U32(abi.HeaderEpochAt)&1)
	least := a.u64(at + abi.KeyedLeastAt + parity)
	greatest := a.u64(at + abi.KeyedGreatestAt + parity)
	*least, *greatest = max(*least, ^value), max(*greatest, value)
	*a.u64(at + abi.KeyedSumAt) += value
	*a.u32(at + abi.KeyedHistogramAt + 4*bitLen(value, abi.HistBuckets))++
	atomic.AddUint64(a.u64(at+abi.KeyedCountAt), 1)
}
