// SPDX-License-Identifier: Apache-2.0

package series

import (
	"strings"
	"time"

	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// ID names a series for good.
type ID uint32

// TableID names a table for good.
type TableID uint32

// Kind says how the values of a series are to be understood.
type Kind uint8

// The kinds.
const (
	// KindCounter goes up over the life of its subject.
	KindCounter Kind = iota + 1
	// KindGauge is a number of the moment.
	KindGauge
	// KindText is a text of the moment.
	KindText
	// KindTruth is true or false at the moment.
	KindTruth
	// KindNumber is the number of the row's subject, KindLife what tells it from a
	// later one with that number; people call neither a kind. They have no ID.
	KindNumber
	KindLife
)

// String is what people call the kind.
func (k Kind) String() string {
	return [...]string{"", "counter", "gauge", "text", "true or false", "", ""}[k]
}

// Exactness says how far a value can be trusted.
type Exactness uint8

// The kinds of exactness.
const (
	// Exact: the kernel counts it for its subject, all of it.
	Exact Exactness = iota
	// Sampled: it was put together from moments, and misses what lies between them.
	Sampled
	// Bound: it was measured of more than its subject, whose own value is at most
	// this.
	Bound
)

// String is exact, sampled or bound.
func (e Exactness) String() string { return [...]string{"exact", "sampled", "bound"}[e] }

// Unit is what a number counts.
type Unit string

// The units that are converted on the way; any other is a word for people.
const (
	Nanoseconds  Unit = "ns"
	Microseconds Unit = "µs"
	Milliseconds Unit = "ms"
	// Millionths of a whole travel as integers, and are shown as a share of 1.
	Millionths Unit = "of 1"
)

// Time is how long one of the unit is; 0: it is no time.
func (u Unit) Time() time.Duration {
	switch u {
	case Nanoseconds:
		return time.Nanosecond
	case Microseconds:
		return time.Microsecond
	case Milliseconds:
		return time.Millisecond
	}
	return 0
}

// Series is one measured quantity.
type Series struct {
	// ID of the series; 0 of what is part of the subject's name.
	ID ID
	// Name, with the unit of a time: run_nanos.
	Name string
	// Unit of a number; empty: none.
	Unit Unit
	Kind Kind
	// Exactness; the zero value is Exact.
	Exactness Exactness
	// Part is the name of what some subjects of the table have and others have not,
	// with all of its series; empty: every subject has it.
	Part string
	// Overlaps says that what is counted of one process may be what is counted of
	// another: the CPUs that they may run on.
	Overlaps bool
	// Help says what it is, in a phrase.
	Help string
	// Source is where it is read from, in Markdown.
	Source string
}

// Adds says whether the sum over several processes means something: it does not of what
// is the same for several.
func (s Series) Adds() bool { return s.Exactness != Bound && !s.Overlaps }

// Label is the name without the unit of a time, as expressions and programs have
// it: they see times in their own unit.
func (s Series) Label() string {
	if s.Unit.Time() == 0 {
		return s.Name
	}
	for _, unit := range []string{"_nanos", "_micros", "_millis"} {
		if label, ok := strings.CutSuffix(s.Name, unit); ok {
			return label
		}
	}
	return s.Name
}

// Table is a set of series that are measured together, of the same subjects.
type Table struct {
	ID TableID
	// Name of the table, the plural of that of one row; a table of which a process
	// is the only subject has no plural.
	Name string
	// Of is what the rows are of.
	Of attunev1.SubjectKind
	// Whole says that each reading has all rows, and takes the place of the one
	// before; otherwise rows are read in turn.
	Whole bool
	// Item is the name of the Go type of a row.
	Item string
	// Help says what it is, in a phrase.
	Help string
	// About is what the reference page says of how it is read, in Markdown.
	About string
	// Cost is what reading it costs the controller.
	Cost string
	// Series are the columns.
	Series []Series
}

// Single says that there is one row: the process.
func (t *Table) Single() bool { return t.Of == attunev1.SubjectKind_SUBJECT_KIND_PROCESS }

// Row is the name of one row: thread, of threads.
func (t *Table) Row() string { return strings.TrimSuffix(t.Name, "s") }

// String returns the name of the series in the catalogue, e.g. "run_time"; "" for
// one that there is not.
func (id ID) String() string { return id.Series().Name }

// Gauge says whether the series is a value of the moment, and no counter.
func (id ID) Gauge() bool { return id.Series().Kind == KindGauge }

// Series returns the signal of that number; the zero Series if there is none.
func (id ID) Series() Series {
	if i := signalAt(id); i >= 0 {
		return signals.Series[i]
	}
	return Series{}
}

// String returns the table's name, e.g. "threads"; "" for one that there is not.
func (id TableID) String() string {
	if t := id.Table(); t != nil {
		return t.Name
	}
	return ""
}

// Table returns the table of that number, nil if there is none. It is shared.
func (id TableID) Table() *Table {
	for i := range details {
		if details[i].ID == id {
			return &details[i]
		}
	}
	if id == signals.ID {
		return &signals
	}
	return nil
}

// Signals returns the table that is read of every process all the time. It is
// shared.
func Signals() *Table { return &signals }

// Tables returns the tables that are read of a process when somebody wants them.
// They are shared.
func Tables() []Table { return details }

// Named returns the signal of a name, and whether there is one.
func Named(name string) (ID, bool) {
	for _, s := range signals.Series {
		if s.Name == name {
			return s.ID, true
		}
	}
	return 0, false
}

// signalAt is where a signal stands in the catalogue; -1: it is none.
func signalAt(id ID) int {
	for i := range signals.Series {
		if signals.Series[i].ID == id {
			return i
		}
	}
	return -1
}
