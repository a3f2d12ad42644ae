// SPDX-License-Identifier: Apache-2.0

package turns

import "time"

// Table is what was read of a table. The zero Table has seen no round.
type Table struct {
	at    time.Time
	read  int // rows in all rounds
	total int // rows that there were in the latest
}

// Turn is when a row was read last. The zero Turn is of one that was not.
type Turn struct {
	table Table         // as it was then
	every time.Duration // since it was read before; 0: it was not
}

// Round takes a round, in which some rows were read of all that there are.
func (t *Table) Round(at time.Time, read, total int) {
	// Rows that are listed may not be read yet, or seldom. Even so each round goes on by one.
	*t = Table{at: at, read: t.read + max(1, read), total: total}
}

// Of returns the turn of a row that was read in the latest round; before is its turn before
// that.
func (t *Table) Of(before Turn) Turn {
	now := Turn{table: *t}
	if !before.table.at.IsZero() {
		now.every = t.at.Sub(before.table.at)
	}
	return now
}

// Awaited reports whether the next turn of a row is still to come: it takes as long as from its
// turn before to its latest.
func (t *Table) Awaited(of Turn) bool { return t.at.Sub(of.table.at) < of.every }

// Gone reports whether a row is not there any more: since its turn as many rows were read as
// there are, and it took longer than from its turn before to that. Some are read seldom.
func (t *Table) Gone(of Turn) bool {
	passed := t.total == 0 || t.read-of.table.read >= max(t.total, of.table.total)
	return passed && 2*t.at.Sub(of.table.at) > 3*of.every
}
