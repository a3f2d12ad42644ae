// SPDX-License-Identifier: Apache-2.0

package shm

import (
	"math"

	"github.com/attune-hpc/attune/dmlib/abi"
)

// keyedAggregates appends what was counted by key since the last call. The
// caller holds life and control.
func (m *Memory) keyedAggregates(dst []Aggregate) []Aggregate {
	for _, u := range m.programs {
		if u.keys == noTable {
			continue
		}
		table := m.tableAt(u.keys)
		rest := m.keyedSince(u, table+abi.TableRestAt)
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
	if load32(m.data, table+abi.TableZeroAt) != 0 {
		f(0, table+abi.TableOfZeroAt)
	}
	for i := range buckets(u.program.source.MaxKeys) {
		if key := load64(m.data, table+abi.TableKeyAt+8*i); key != 0 {
			f(key, table+abi.TableBucketAt+i*abi.KeyedBytes)
		}
	}
}

// keyedSince reads the aggregate at an offset and takes the difference to its
// last reading.
func (m *Memory) keyedSince(u *programUse, at int) Aggregate {
	parity := int(load32(m.data, abi.HeaderEpochAt) & 1)
	now := pointSum{
		totals: m.readTotals(at, abi.KeyedHistogramAt),
		min:    ^load64(m.data, at+abi.KeyedLeastAt+8*parity), max: load64(m.data, at+abi.KeyedGreatestAt+8*parity),
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
		store64(m.data, at+abi.KeyedLeastAt+8*parity, 0)
		store64(m.data, at+abi.KeyedGreatestAt+8*parity, 0)
	}
	for _, u := range m.programs {
		if u.keys == noTable {
			continue
		}
		reset(m.tableAt(u.keys) + abi.TableRestAt)
		m.eachKey(u, func(_ uint64, at int) { reset(at) })
	}
}

// clearTable makes a table as new. A thread that is in the middle of a hit may
// still leave it in there.
func (m *Memory) clearTable(number int) {
	table := m.data[m.tableAt(number):][:abi.TableBytes]
	for i := range abi.TableBuckets {
		if load64(table, abi.TableKeyAt+8*i) != 0 {
			clear(table[abi.TableBucketAt+i*abi.KeyedBytes:][:abi.KeyedBytes])
			store64(table, abi.TableKeyAt+8*i, 0)
		}
	}
	clear(table[abi.TableRestAt:abi.TableBucketAt])
	store32(table, abi.TableZeroAt, 0)
	store32(table, abi.TableKeysAt, 0)
}
