// SPDX-License-Identifier: Apache-2.0

package objfile

import (
	"sync"
	"weak"
)

// keptTables are the symbol tables of a file for as long as the garbage
// collector leaves them: a hundred names that are looked up one after another
// are looked up in one table, and none stays in memory for long.
type keptTables struct {
	mu              sync.Mutex // guards what follows; held while one is read
	dynamic, static weak.Pointer[symbolTable]
}

// kept returns a table, read anew if it has gone.
func (k *keptTables) kept(table *weak.Pointer[symbolTable], read func() (*symbolTable, error)) (*symbolTable, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if t := table.Value(); t != nil {
		return t, nil
	}
	t, err := read()
	if err == nil {
		*table = weak.Make(t)
	}
	return t, err
}

func (f *File) dynamicSymbols() (*symbolTable, error) {
	return f.tables.kept(&f.tables.dynamic, f.readDynamicSymbols)
}

func (f *File) staticSymbols() (*symbolTable, error) {
	return f.tables.kept(&f.tables.static, f.readStaticSymbols)
}
