// SPDX-License-Identifier: Apache-2.0

package series

import (
	"slices"

	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// Rows are the subjects of one table that were read in one round.
type Rows[T any] struct {
	// Error says why none can be read, or not all of them; empty: they can.
	Error string
	// Total is how many subjects there are. A bounded number of them is read at one
	// time.
	Total int
	// Items are those that were read; what is known of each is of this round.
	Items []T
}

// row is a type that is generated from a table of the catalogue.
type row[T any] interface {
	*T
	table() TableID
	put(*cells)
	subject(number int64, life uint64)
	number(id ID, value uint64)
	text(id ID, value string)
}

// cells are what is known of one subject.
type cells struct {
	subject        *attunev1.Subject
	numbers, texts []uint32
	row            attunev1.Row
}

func (c *cells) setSubject(number int64, life uint64) {
	c.subject = &attunev1.Subject{Number: number, Life: life}
}

func (c *cells) setNumber(id ID, value uint64) {
	c.numbers = append(c.numbers, uint32(id))
	c.row.Numbers = append(c.row.Numbers, value)
}

func (c *cells) setTruth(id ID, value bool) {
	if value {
		c.setNumber(id, 1)
		return
	}
	c.setNumber(id, 0)
}

func (c *cells) setText(id ID, value string) {
	c.texts = append(c.texts, uint32(id))
	c.row.Texts = append(c.row.Texts, value)
}

// tablesOf makes the tables of rows: one for each set of series that some of them
// have. nil rows make none.
func tablesOf[T any, R row[T]](rows *Rows[T]) []*attunev1.Table {
	if rows == nil {
		return nil
	}
	var of R
	table := of.table().Table()
	first := &attunev1.Table{Table: uint32(table.ID), Of: table.Of, Error: rows.Error, Total: uint32(rows.Total)}
	out := []*attunev1.Table{first}
	for i := range rows.Items {
		c := &cells{}
		R(&rows.Items[i]).put(c)
		c.addTo(&out)
	}
	return out
}

// addTo adds the row to the table that has its series, or to a further one.
func (c *cells) addTo(tables *[]*attunev1.Table) {
	first := (*tables)[0]
	if len(first.Rows) == 0 {
		first.Numbers, first.Texts = c.numbers, c.texts
	}
	at := slices.IndexFunc(*tables, func(t *attunev1.Table) bool {
		return slices.Equal(t.Numbers, c.numbers) && slices.Equal(t.Texts, c.texts)
	})
	if at < 0 {
		at = len(*tables)
		*tables = append(*tables, &attunev1.Table{Table: first.Table, Of: first.Of, Total: first.Total, Numbers: c.numbers, Texts: c.texts})
	}
	t := (*tables)[at]
	t.Rows = append(t.Rows, &attunev1.Row{Subject: c.subject, Numbers: c.row.Numbers, Texts: c.row.Texts})
}

// rowsFrom takes the rows of a table out of a sample; nil: it was not read. Series
// of a newer controller are left out.
func rowsFrom[T any, R row[T]](tables []*attunev1.Table) *Rows[T] {
	var of R
	var out *Rows[T]
	for _, t := range tables {
		if TableID(t.GetTable()) != of.table() {
			continue
		}
		if out == nil {
			out = &Rows[T]{Error: t.GetError(), Total: int(t.GetTotal()), Items: make([]T, 0, len(t.GetRows()))}
		}
		for _, r := range t.GetRows() {
			var item T
			fill[T, R](&item, t, r)
			out.Items = append(out.Items, item)
		}
	}
	return out
}

// fill takes over what a row says.
func fill[T any, R row[T]](item R, t *attunev1.Table, r *attunev1.Row) {
	item.subject(r.GetSubject().GetNumber(), r.GetSubject().GetLife())
	for i, value := range r.GetNumbers()[:min(len(r.GetNumbers()), len(t.GetNumbers()))] {
		item.number(ID(t.Numbers[i]), value)
	}
	for i, value := range r.GetTexts()[:min(len(r.GetTexts()), len(t.GetTexts()))] {
		item.text(ID(t.Texts[i]), value)
	}
}

// Row is one subject as it travels, for those who take any table of the catalogue.
type Row struct {
	// Number and Life are the subject's.
	Number int64
	Life   uint64

	table *attunev1.Table
	row   *attunev1.Row
}

// RowsOf takes the rows of any table out of what was measured; nil: it was not read.
// The rows share memory with the tables.
func RowsOf(tables []*attunev1.Table, id TableID) *Rows[Row] {
	var out *Rows[Row]
	for _, t := range tables {
		if TableID(t.GetTable()) != id {
			continue
		}
		if out == nil {
			out = &Rows[Row]{Error: t.GetError(), Total: int(t.GetTotal())}
		}
		for _, r := range t.GetRows() {
			out.Items = append(out.Items, Row{r.GetSubject().GetNumber(), r.GetSubject().GetLife(), t, r})
		}
	}
	return out
}

// Value returns a number of the row, and whether it is known.
func (r Row) Value(id ID) (uint64, bool) {
	i := slices.Index(r.table.GetNumbers(), uint32(id))
	if i < 0 || i >= len(r.row.GetNumbers()) {
		return 0, false
	}
	return r.row.Numbers[i], true
}

// Text returns a text of the row; empty: it is not known.
func (r Row) Text(id ID) string {
	i := slices.Index(r.table.GetTexts(), uint32(id))
	if i < 0 || i >= len(r.row.GetTexts()) {
		return ""
	}
	return r.row.Texts[i]
}

// single is a type that is generated from a table of which the process is the only
// subject.
type single[T any] interface {
	row[T]
	failure() *string
}

// singleTable makes the table of what is known of the process itself.
func singleTable[T any, R single[T]](what R) []*attunev1.Table {
	if what == nil {
		return nil
	}
	rows := &Rows[T]{Error: *what.failure(), Total: 1}
	if rows.Error == "" {
		rows.Items = []T{*what}
	}
	return tablesOf[T, R](rows)
}

// singleFrom is rowsFrom for such a table.
func singleFrom[T any, R single[T]](tables []*attunev1.Table) R {
	rows := rowsFrom[T, R](tables)
	if rows == nil {
		return nil
	}
	out := R(new(T))
	if len(rows.Items) > 0 {
		*out = rows.Items[0]
	}
	*out.failure() = rows.Error
	return out
}
