// SPDX-License-Identifier: Apache-2.0

package uprobe

import "sync"

// readMapped reads what a process has mapped, with the rows that tables has not; nil if there
// is no space. mu is watchTable.mu, which the caller does not hold. It calls forget in the end.
func readMapped(space Space, tables *rowTables, mu *sync.Mutex) *mappedObjects {
	if space == nil {
		return nil
	}
	objects := space.Objects()
	m := &mappedObjects{
		space: space, objects: objects[:min(len(objects), maxObjects)], rows: make(map[FileID]*rowTable), tables: tables, mu: mu,
	}
	for _, o := range m.keepKnown() {
		if _, read := m.rows[o.File]; !read {
			m.rows[o.File] = newRowTable(o)
		}
	}
	return m
}

// keepKnown holds the rows that there are, and returns the objects of the other files.
func (m *mappedObjects) keepKnown() (unknown []Object) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, o := range m.objects {
		if m.tables.hold(o.File, nil) == nil {
			unknown = append(unknown, o)
		} else {
			m.kept = append(m.kept, o.File)
		}
	}
	return unknown
}

// newRowTable reads the rows of an object's file; nil: there are none, or no room for them.
func newRowTable(o Object) *rowTable {
	rows, err := o.Rows()
	if err != nil || len(rows) == 0 || len(rows) > maxRows {
		return nil
	}
	table := &rowTable{count: len(rows)}
	if table.rows, err = newLooseTable(len(rows), rows); err != nil {
		return nil
	}
	return table
}

// forget gives up what no table has taken over; nil has nothing.
func (m *mappedObjects) forget() {
	if m == nil {
		return
	}
	for _, table := range m.rows {
		if table != nil {
			_ = table.rows.close() // nobody has seen it
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, file := range m.kept {
		m.tables.release(file)
	}
}
