// SPDX-License-Identifier: Apache-2.0

package declarative

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/attune-hpc/attune/proto/attune/series"
	"github.com/attune-hpc/attune/tunlets/kit/turns"
	"github.com/attune-hpc/attune/tunlets/sdk"
)

const (
	// maxItems bounds the threads, sockets or pipes of a process that expressions
	// see, so that one about all of them stays below mostCost.
	maxItems = 512
	// staleAfter is how long an item is remembered that is not read any more. Each is
	// read in turn: of 512 threads, 64 in a round of at most 250 ms.
	staleAfter = 2500 * time.Millisecond
)

// itemKey names a thread or descriptor for good.
type itemKey struct {
	number int64
	life   uint64 // start time, or inode
}

// reading is an item as it was read last.
type reading struct {
	at    time.Time
	turn  turns.Turn
	row   series.Row
	value *item // nil: read once, so that no rate is known
}

// items are what is known of the details of one kind of a process.
type items struct {
	rounds int  // in which the kind was read
	whole  bool // each time all of it, some seconds apart
	table  turns.Table
	last   map[itemKey]reading
}

// read takes the rows of one round, of as many as there are, and forgets those that are
// gone.
func (i *items) read(at time.Time, table *series.Table, rows []series.Row, total int) {
	i.rounds++
	i.whole = table.Whole
	i.table.Round(at, len(rows), total)
	latest := make(map[itemKey]bool, len(rows))
	for _, row := range rows {
		latest[itemKey{row.Number, row.Life}] = true
	}
	maps.DeleteFunc(i.last, func(key itemKey, r reading) bool {
		return !latest[key] && (i.whole || at.Sub(r.at) > staleAfter)
	})
	for _, now := range rows {
		key := itemKey{now.Number, now.Life}
		before, known := i.last[key]
		if !known && len(i.last) >= maxItems {
			continue
		}
		next := reading{at: at, turn: i.table.Of(before.turn), row: now}
		if seconds := at.Sub(before.at).Seconds(); known && seconds > 0 {
			next.value = &item{table, before.row, now, seconds}
		} else if i.whole {
			next.value = &item{table: table, now: now} // the next reading is far: without rates
		}
		i.last[key] = next
	}
}

// list is what expressions see, in the order of numbers: what was read twice, so
// that rates are known, and is still there, or what is read as a whole; false: that was
// not yet.
func (i *items) list() ([]*item, bool) {
	if i == nil {
		return nil, false
	}
	out := []*item{}
	keys := slices.SortedFunc(maps.Keys(i.last), func(a, b itemKey) int {
		return cmp.Or(cmp.Compare(a.number, b.number), cmp.Compare(a.life, b.life))
	})
	for _, k := range keys {
		if r := i.last[k]; r.value != nil && (i.whole || !i.table.Gone(r.turn)) {
			out = append(out, r.value)
		}
	}
	return out, i.rounds >= 2 || i.whole
}

// single is what is known of the process itself, which needs no second reading but
// for rates; nil: nothing yet.
func (i *items) single() *item {
	if i == nil {
		return nil
	}
	return i.last[itemKey{}].value
}

// details is what is known of a process beside its signals, since it was asked
// for. The zero value knows nothing.
type details struct {
	kinds map[sdk.Detail]*items
	// fresh are the kinds of the latest sample.
	fresh []sdk.Detail
	// refusal says why a kind cannot be read; empty: all can.
	refusal string
}

// take takes the details of a sample.
func (d *details) take(s sdk.Sample) {
	d.fresh, d.refusal = d.fresh[:0], ""
	for i := range series.Tables() {
		table := &series.Tables()[i]
		rows := s.Details.Rows(table.ID)
		if rows == nil {
			continue
		}
		if d.kinds == nil {
			d.kinds = map[sdk.Detail]*items{}
		}
		if d.kinds[table.ID] == nil {
			d.kinds[table.ID] = &items{last: map[itemKey]reading{}}
		}
		d.kinds[table.ID].read(s.At, table, rows.Items, rows.Total)
		d.fresh = append(d.fresh, table.ID)
		// An error beside items is about some of them only, and of no matter.
		if rows.Error != "" && len(rows.Items) == 0 {
			d.refusal = rows.Error
		}
	}
}

// news says whether any of some kinds was read in the latest sample.
func (d *details) news(kinds []sdk.Detail) bool {
	return slices.ContainsFunc(kinds, func(k sdk.Detail) bool { return slices.Contains(d.fresh, k) })
}

// unread says that some of the kinds that are needed have not been read twice yet.
func (d *details) unread(kinds []sdk.Detail) bool {
	for _, t := range itemTables() {
		if _, known := d.kinds[t.ID].list(); !known && slices.Contains(kinds, t.ID) {
			return true
		}
	}
	return false
}
