// SPDX-License-Identifier: Apache-2.0

package ring

import "math"

// keyedAggregates appends what was counted by key since the last call. The
// caller holds life and control.
func (m *Memory) keyedAggregates(dst []Aggregate) []Aggregate {
	for _, u := range m.programs {
		if u.keys == noTable {
			continue
		}
		table := m.tableAt(u.keys)
		rest := m.keyedSince(u, table+tableRest)
		rest.Unreadable = m.takeUnreadable(u)
		dst = append(dst, rest)
		m.eachKey(u, func(key uint64, at int) {
			a := m.keyedSince(u, at)
			if a.Key, a.HasKey = key, true; a.Count > 0 {
				dst = append(dst, a)
			}
		})
	}
	return dst
}

// eachKey calls f with every key of a program's table and the offset of its
// aggregate. Buckets without a key are not looked at: reading alone would
// allocate their pages. The caller holds life and control.
func (m *Memory) eachKey(u *programUse, f func(key uint64, at int)) {
	table := m.tableAt(u.keys)
	if load32(m.data, table+tableZero) != 0 {
		f(0, table+tableOfZero)
	}
	for i := range buckets(u.program.source.MaxKeys) {
		if key := load64(m.data, table+tableKey+8*i); key != 0 {
			f(key, table+tableBucket+i*keyedSize)
		}
	}
}

// keyedSince reads the aggregate at an offset and takes the difference to its
// last reading.
func (m *Memory) keyedSince(u *programUse, at int) Aggregate {
	parity := int(load32(m.data, headerEpoch) & 1)
	now := pointSum{
		totals: m.readTotals(at, keyedHistogram),
		min:    ^load64(m.data, at+keyedLeast+8*parity), max: load64(m.data, at+keyedGreatest+8*parity),
	}
	if now.min == math.MaxUint64 && now.max == 0 {
		now.min, now.max = 1, 0 // none yet
	}
	a := Aggregate{Point: u.point, Local: -1, Duration: u.duration && u.program.own(), Signed: u.program.signed()}
	last := u.last[at]
	now.since(&last, &a)
	u.last[at] = now.totals
	return a
}

// clearExtremes prepares those of an interval that has not begun.
func (m *Memory) clearExtremes(epoch uint32) {
	parity := int(epoch & 1)
	reset := func(at int) {
		store64(m.data, at+keyedLeast+8*parity, 0)
		store64(m.data, at+keyedGreatest+8*parity, 0)
	}
	for _, u := range m.programs {
		if u.keys == noTable {
			continue
		}
		reset(m.tableAt(u.keys) + tableRest)
		m.eachKey(u, func(_ uint64, at int) { reset(at) })
	}
}

// clearTable makes a table as new. A thread that is in the middle of a hit may
// still leave it in there.
func (m *Memory) clearTable(number int) {
	table := m.data[m.tableAt(number):][:tableSize]
	for i := range tableBuckets {
		if load64(table, tableKey+8*i) != 0 {
			clear(table[tableBucket+i*keyedSize:][:keyedSize])
			store64(table, tableKey+8*i, 0)
		}
	}
	clear(table[tableRest:tableBucket])
	store32(table, tableZero, 0)
	store32(table, tableKeys, 0)
}
