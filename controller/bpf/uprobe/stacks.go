// SPDX-License-Identifier: Apache-2.0

package uprobe

import (
	"fmt"

	"github.com/cilium/ebpf"
)

const (
	// maxRows is UNWIND_ROWS of include/unwind.h, less what a search needs.
	maxRows = 1<<22 - 1
	// maxObjects is UNWIND_OBJECTS, in the same way.
	maxObjects = 1<<13 - 1
)

// rowTables holds the rows of files that stacks may lead through, each as long as some
// watch needs it. Guarded by watchTable.mu.
type rowTables struct {
	outer *ebpf.Map
	of    map[FileID]*rowTable
	free  []uint32
}

type rowTable struct {
	number uint32
	rows   innerTable[Row]
	count  int
	users  int
}

func (r *rowTables) open(outer *ebpf.Map) {
	r.outer, r.of = outer, make(map[FileID]*rowTable)
	for i := range outer.MaxEntries() {
		r.free = append(r.free, i)
	}
}

// hold returns the rows of an object's file; nil: there are none, or no room for them.
func (r *rowTables) hold(object Object) *rowTable {
	if known := r.of[object.File]; known != nil {
		known.users++
		return known
	}
	rows, err := object.Rows()
	if err != nil || len(rows) == 0 || len(rows) > maxRows || len(r.free) == 0 {
		return nil
	}
	table := &rowTable{number: r.free[0], count: len(rows), users: 1}
	if table.rows, err = newInnerTable[Row](r.outer, table.number, rowTableSpec(len(rows)), rows...); err != nil {
		return nil
	}
	r.free = r.free[1:]
	r.of[object.File] = table
	return table
}

// release gives up a hold.
func (r *rowTables) release(file FileID) {
	table := r.of[file]
	if table == nil {
		return
	}
	if table.users--; table.users == 0 {
		_ = table.rows.remove(r.outer, table.number)
		delete(r.of, file)
		r.free = append(r.free, table.number)
	}
}

// stackObjects are the objects of a process, as the programs find them.
type stackObjects struct {
	space Space
	table innerTable[uprobesUnwindObject]
	files []FileID // of which rows are held
}

// objectTables tells the programs what processes have mapped, each under a number.
// Guarded by watchTable.mu.
type objectTables struct {
	outer *ebpf.Map
	rows  rowTables
}

func (t *objectTables) open(from *uprobeMaps) {
	t.outer = from.ObjectTables
	t.rows.open(from.RowTables)
}

// set tells the programs what a process has mapped now.
func (t *objectTables) set(number uint32, of *stackObjects, space Space) error {
	if space == nil {
		return fmt.Errorf("%w: a stack, but nothing to walk it by", errSpec)
	}
	objects := space.Objects()
	objects = objects[:min(len(objects), maxObjects)]
	now := stackObjects{space: space}
	elements := make([]uprobesUnwindObject, 1, len(objects)+1) // the first is none
	for _, o := range objects {
		one := uprobesUnwindObject{Start: o.Start, End: o.End, Base: o.Base}
		if rows := t.rows.hold(o); rows != nil {
			one.Table, one.Rows = rows.number+1, uint32(rows.count)
			now.files = append(now.files, o.File)
		}
		elements = append(elements, one)
	}
	var err error
	if now.table, err = newInnerTable(t.outer, number, objectTableSpec(len(elements)), elements...); err != nil {
		t.release(now)
		return err
	}
	before := *of
	*of = now
	t.release(before)
	if before.table.array != nil {
		return before.table.close() // its place has the new one
	}
	return nil
}

func (t *objectTables) release(objects stackObjects) {
	for _, file := range objects.files {
		t.rows.release(file)
	}
}

// drop gives up what there is of a process.
func (t *objectTables) drop(number uint32, of *stackObjects) {
	t.release(*of)
	_ = of.table.remove(t.outer, number)
	if of.space != nil {
		_ = of.space.Close() // read only
	}
	*of = stackObjects{}
}
