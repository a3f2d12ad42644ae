// SPDX-License-Identifier: Apache-2.0

package uprobe

import (
	"fmt"
	"sync"

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

// hold returns the rows of a file, those that were read for it if no table has them yet;
// nil: there are none, or no room for them.
func (r *rowTables) hold(file FileID, read map[FileID]*rowTable) *rowTable {
	if known := r.of[file]; known != nil {
		known.users++
		return known
	}
	table := read[file]
	if table == nil || len(r.free) == 0 {
		return nil
	}
	delete(read, file)
	if table.rows.put(r.outer, r.free[0]) != nil {
		return nil
	}
	table.number, table.users = r.free[0], 1
	r.free = r.free[1:]
	r.of[file] = table
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

// mappedObjects is what a process has mapped, with the rows of its files. It belongs to the
// goroutine that reads it, without watchTable.mu: reading the rows of a large file takes a
// while, in which all other counts would wait.
type mappedObjects struct {
	space   Space
	objects []Object
	kept    []FileID             // files of which others had the rows; they are held meanwhile
	rows    map[FileID]*rowTable // of the other files, in no outer table yet
	tables  *rowTables
	mu      *sync.Mutex // watchTable.mu, which guards tables
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
func (t *objectTables) set(number uint32, of *stackObjects, mapped *mappedObjects) error {
	if mapped == nil {
		return fmt.Errorf("%w: a stack, but nothing to walk it by", errSpec)
	}
	now := stackObjects{space: mapped.space}
	elements := make([]uprobesUnwindObject, 1, len(mapped.objects)+1) // the first is none
	for _, o := range mapped.objects {
		one := uprobesUnwindObject{Start: o.Start, End: o.End, Base: o.Base}
		if rows := t.rows.hold(o.File, mapped.rows); rows != nil {
			one.Table, one.Rows = rows.number+1, uint32(rows.count)
			now.files = append(now.files, o.File)
		}
		elements = append(elements, one)
	}
	var err error
	if now.table, err = newInnerTable(t.outer, number, len(elements), elements...); err != nil {
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
