// SPDX-License-Identifier: Apache-2.0

package shm

import (
	"github.com/attune-hpc/attune/controller/aggregate"
	"github.com/attune-hpc/attune/dmlib/abi"
)

// ofRest stands for a place among the readings of a table.
const ofRest = -1

// keyedAggregates appends what was counted by key since the last call. The
// caller holds life and control.
func (m *Memory) keyedAggregates(dst []Aggregate, next uint32) []Aggregate {
	for _, u := range m.programs {
		if u.keys == noTable {
			continue
		}
		since := func(place int, sums *aggregate.Memory) Aggregate {
			a := Aggregate{Point: u.point, Local: -1, Duration: u.duration && u.program.own(), Signed: u.program.signed()}
			last := u.last[place]
			sums.Read(&a.Counts, next-1, next)
			a.since(&last)
			u.last[place] = last
			return a
		}
		rest := since(ofRest, m.rest(u))
		rest.Unreadable = m.takeUnreadable(u)
		dst = append(dst, rest)
		m.places(u).Each(func(place int, key uint64, sums *aggregate.Memory) {
			if a := since(place, sums); a.Count > 0 {
				a.Key, a.HasKey = key, true
				dst = append(dst, a)
			}
		})
	}
	return dst
}

// rest has the hits of keys without a place.
func (m *Memory) rest(u *programUse) *aggregate.Memory {
	return &m.aggregates(m.tableAt(u.keys)+abi.TableRestAt, 1)[0]
}

// places are those of a program's table that it uses.
func (m *Memory) places(u *programUse) aggregate.Table {
	return m.aggregates(m.tableAt(u.keys)+abi.TablePlaceAt, u.program.source.Places())
}

// eachKeyed calls f with all aggregates by key, and the rests.
func (m *Memory) eachKeyed(f func(*aggregate.Memory)) {
	for _, u := range m.programs {
		if u.keys != noTable {
			f(m.rest(u))
			m.places(u).Each(func(_ int, _ uint64, sums *aggregate.Memory) { f(sums) })
		}
	}
}

// clearTable makes a program's table as new. A thread that is in the middle of a hit
// may still leave it in there.
func (m *Memory) clearTable(u *programUse) {
	m.places(u).Each(func(_ int, _ uint64, sums *aggregate.Memory) { clear(sums[:]) })
	clear(m.rest(u)[:])
	store32(m.data, m.tableAt(u.keys)+abi.TableKeysAt, 0)
}
