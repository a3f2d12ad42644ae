// SPDX-License-Identifier: Apache-2.0

package symbols

import (
	"hash/maphash"
	"slices"
	"sync"

	"github.com/attune-hpc/attune/internal/objfile"
)

// Exports remembers which functions objects have for others to call: a program may
// map a hundred libraries, and each name of a point is looked for in all of them. It may be used from any goroutine; its zero value is ready.
type Exports struct {
	mu     sync.Mutex // guards tables
	tables map[objfile.FileVersion][]uint64
}

// maxExports bounds the memory: 8 bytes for each function of so many objects.
const maxExports = 512

var exportsSeed = maphash.MakeSeed()

// Has says whether an object has a function of that name, as [objfile.Image.Exports]
// does; in one of 2^40 cases of an object that has none, wrongly.
func (e *Exports) Has(image objfile.Image, name string) bool {
	if image.Inode == 0 {
		return false
	}
	_, found := slices.BinarySearch(e.table(image), maphash.String(exportsSeed, name))
	return found
}

// table are the hashes of the names, sorted. Two goroutines may read one at the same time.
func (e *Exports) table(image objfile.Image) []uint64 {
	key := image.Version()
	e.mu.Lock()
	table, known := e.tables[key]
	e.mu.Unlock()
	if known {
		return table
	}
	image.EachExport(func(name []byte) { table = append(table, maphash.Bytes(exportsSeed, name)) })
	slices.Sort(table)
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.tables == nil || len(e.tables) >= maxExports {
		e.tables = make(map[objfile.FileVersion][]uint64)
	}
	e.tables[key] = slices.Clip(table)
	return table
}
