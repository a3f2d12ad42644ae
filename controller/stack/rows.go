// SPDX-License-Identifier: Apache-2.0

package stack

import (
	"cmp"
	"errors"
	"math"
	"slices"
	"sync/atomic"

	"github.com/attune-hpc/attune/controller/bpf/uprobe"
	"github.com/attune-hpc/attune/internal/callframe"
	"github.com/attune-hpc/attune/internal/objfile"
)

const (
	// maxFrameInfo is how large a section .eh_frame is read, allFrameInfo how much of all files
	// of a process: its user decides how many there are.
	maxFrameInfo, allFrameInfo = 64 << 20, 256 << 20
	// maxRows bounds the rows of a file, allRows those of all files of a process: they lie in the
	// kernel's memory, 8 bytes each.
	maxRows, allRows = 1 << 22, 1 << 23
)

const wordBytes = 8

// errMuch says that the process has mapped more than is read.
var errMuch = errors.New("too much call frame information")

// allowance is what is left to read of the files of a process.
type allowance struct{ bytes, rows atomic.Int64 }

func (a *allowance) open() {
	a.bytes.Store(allFrameInfo)
	a.rows.Store(allRows)
}

// rowsOf reads the rows of a file as long as there is something left for it.
func (a *allowance) rowsOf(file *objfile.File, base uint64) ([]uprobe.Row, error) {
	if a.bytes.Load() <= 0 || a.rows.Load() <= 0 {
		return nil, errMuch
	}
	rows, size, err := rowsOf(file, base)
	a.bytes.Add(-int64(size))
	a.rows.Add(-int64(len(rows)))
	return rows, err
}

// rowsOf reads how to walk through the frames of a file's functions, and how many bytes say
// so; none where it has no call frame information. Addresses count from base.
func rowsOf(file *objfile.File, base uint64) (rows []uprobe.Row, size int, err error) {
	section, err := file.Section(".eh_frame", maxFrameInfo)
	if err != nil {
		return nil, 0, err
	}
	address, _, _ := file.SectionAddress(".eh_frame")
	b := builder{base: base}
	b.linkage, b.linkageSize, _ = file.SectionAddress(".plt")
	var entries []callframe.Entry
	if err := callframe.Each(section, address, func(e callframe.Entry) { entries = append(entries, e) }); err != nil {
		return nil, len(section), err
	}
	slices.SortFunc(entries, func(x, y callframe.Entry) int { return cmp.Compare(x.Start, y.Start) })
	for _, e := range entries {
		b.entry(e)
	}
	if len(b.rows) == maxRows {
		return nil, len(section), errMuch
	}
	return b.rows, len(section), nil
}

// builder puts the rows of entries behind one another.
type builder struct {
	base, linkage, linkageSize uint64
	rows                       []uprobe.Row
}

func (b *builder) entry(e callframe.Entry) {
	if e.Start < b.base || e.End-b.base > math.MaxUint32 {
		return
	}
	// What the entry before left behind its end gives way.
	for n := len(b.rows); n > 0 && uint64(b.rows[n-1].PC) >= e.Start-b.base; n = len(b.rows) {
		b.rows = b.rows[:n-1]
	}
	e.Rows(func(r callframe.Row) { b.add(r.Start, b.encode(r)) })
	b.add(e.End, uprobe.Row{Kind: uprobe.RowNone})
}

// add adds a row; one that says the same as the one before is left out.
func (b *builder) add(start uint64, row uprobe.Row) {
	row.PC = uint32(start - b.base)
	if n := len(b.rows); n > 0 {
		before := b.rows[n-1]
		if before.PC = row.PC; before == row {
			return
		}
	}
	if len(b.rows) < maxRows {
		b.rows = append(b.rows, row)
	}
}

// encode says what a row says in the form of the kernel's programs.
func (b *builder) encode(r callframe.Row) uprobe.Row {
	kind := uprobe.RowBase
	switch {
	case r.Frame == callframe.ByExpression && r.Start-b.linkage < b.linkageSize:
		return uprobe.Row{Kind: uprobe.RowLinkage}
	case r.Frame == callframe.WithoutCaller:
		return uprobe.Row{Kind: uprobe.RowOutermost}
	case r.Frame == callframe.ByStack:
		kind = uprobe.RowStack
	}
	switch {
	case kind == uprobe.RowBase && r.Frame != callframe.ByBase, !words(r.Offset, math.MaxUint16), !words(r.Saved, math.MaxUint8):
		return uprobe.Row{Kind: uprobe.RowOther}
	}
	return uprobe.Row{Frame: uint16(r.Offset / wordBytes), Kind: kind, Saved: uint8(r.Saved / wordBytes)}
}

// words says whether so many bytes are whole words, and no more than most.
func words(bytes, most int64) bool {
	return bytes >= 0 && bytes%wordBytes == 0 && bytes/wordBytes <= most
}
