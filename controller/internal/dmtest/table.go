// SPDX-License-Identifier: Apache-2.0

package dmtest

import "sync/atomic"

// Program returns the bytes of the program that the control of a local point
// names.
func (a *App) Program(point int) []byte {
	number := uint64(*a.u32(a.control(point, "program")) & 0xffff)
	at := *a.U64("program_offset") + number*a.Layout["attune_program_slot"]
	return a.Data[at : at+a.Layout["attune_program"]]
}

// Unreadable counts a hit of a local point whose value could not be read.
func (a *App) Unreadable(point int) {
	number := uint64(*a.u32(a.control(point, "program")) & 0xffff)
	at := *a.U64("program_offset") + number*a.Layout["attune_program_slot"]
	atomic.AddUint64(a.u64(at+a.Layout["attune_program_slot.unreadable"]), 1)
}

// CountKey adds a value to the aggregate of a key, which gets the bucket after
// all others that have one; key 0 and the rest have aggregates of their own.
func (a *App) CountKey(table int, key, value uint64) {
	at := a.table(table)
	if key == 0 {
		*a.u32(at + a.Layout["attune_table.zero"]) = 1
		a.countKeyed(at+a.Layout["attune_table.of_zero"], value)
		return
	}
	for i := uint64(0); ; i++ {
		stored := a.u64(at + a.Layout["attune_table.key"] + 8*i)
		if *stored == 0 || *stored == key {
			*stored = key
			a.countKeyed(at+a.Layout["attune_table.bucket"]+i*a.Layout["attune_keyed"], value)
			return
		}
	}
}

// CountRest adds a value to the aggregate of the keys without a place.
func (a *App) CountRest(table int, value uint64) {
	a.countKeyed(a.table(table)+a.Layout["attune_table.rest"], value)
}

func (a *App) table(number int) uint64 {
	return *a.U64("table_offset") + uint64(number)*a.Layout["attune_table"]
}

func (a *App) countKeyed(at, value uint64) {
	parity := 8 * uint64(*a.U32("epoch")&1)
	least := a.u64(at + a.Layout["attune_keyed.least"] + parity)
	greatest := a.u64(at + a.Layout["attune_keyed.greatest"] + parity)
	*least, *greatest = max(*least, ^value), max(*greatest, value)
	*a.u64(at + a.Layout["attune_keyed.sum"]) += value
	*a.u32(at + a.Layout["attune_keyed.histogram"] + 4*bitLen(value, a.Layout["ATTUNE_HIST_BUCKETS"]))++
	atomic.AddUint64(a.u64(at+a.Layout["attune_keyed.count"]), 1)
}
