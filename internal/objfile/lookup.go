// SPDX-License-Identifier: Apache-2.0

package objfile

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/attune-hpc/attune/internal/bounded"
	"github.com/attune-hpc/attune/internal/symname"
)

// LookupOptions of [File.Lookup].
type LookupOptions struct {
	// Kind of the symbols.
	Kind SymbolKind
	// Limit is the greatest number of addresses; 0: [MaxMatches].
	Limit int
	// Suggest has [ErrNoSymbol] say what is close to the name, which takes several
	// times as long as finding that it is not there.
	Suggest bool
}

// Lookup finds what a name or pattern stands for (see [symname.Parse]), in
// .dynsym and .symtab, and if there is no .symtab, in the separate debug file,
// and without that in .gnu_debugdata, or what a Go program has for itself.
// Addresses come in ascending order, each once and under its best name: a global one
// before a weak and a local one.
//
// A pattern may match any number of addresses up to the limit, beyond it
// [ErrTooManySymbols] comes with what there is. A name stands for one address,
// or for several only if the source has one function for them (constructors);
// otherwise the error is an [*AmbiguousError].
//
// It looks through the tables anew each time: 10 to 25 ms for node (99 MB with
// 250,000 symbols; BenchmarkLookup). Callers that ask often remember the answer.
func (f *File) Lookup(query string, options LookupOptions) ([]Symbol, error) {
	q, err := symname.Parse(query)
	if err != nil {
		return nil, err
	}
	s := search{
		query: q, kind: options.Kind, limit: options.Limit, byAddress: make(map[uint64]Symbol),
		work: bounded.NewWork("looking through the names of "+f.name, maxLookup), names: newNames(),
	}
	if s.limit <= 0 || s.limit > MaxMatches {
		s.limit = MaxMatches
	}
	tables, err := f.ownTables()
	if err != nil {
		return nil, err
	}
	for _, t := range tables {
		s.table(&f.layout, t)
	}
	if !s.settled() && tables[len(tables)-1].dynamic {
		for _, t := range f.debugSymbols() {
			s.table(&f.layout, t)
			tables = append(tables, t)
		}
	}
	switch {
	case s.err != nil:
		return nil, fmt.Errorf("%w: %w", ErrUnsupported, s.err)
	case len(s.byAddress) == 0 && options.Suggest:
		return nil, f.unknown(query, tables)
	case len(s.byAddress) == 0:
		return nil, fmt.Errorf("%w: %s in %s", ErrNoSymbol, query, f.name)
	}
	return s.result()
}

// ownTables loads the symbol tables of the file itself: .dynsym, and .symtab
// where it was not stripped off.
func (f *File) ownTables() ([]*symbolTable, error) {
	dynamic, err := f.dynamicSymbols()
	if err != nil {
		return nil, err
	}
	static, err := f.staticSymbols()
	switch {
	case err != nil:
		return nil, err
	case static.count() == 0:
		return []*symbolTable{dynamic}, nil
	}
	return []*symbolTable{dynamic, static}, nil
}

// debugSymbols loads what others know of a stripped file. It is a help: where
// it is broken, the search goes on with what the file itself has.
func (f *File) debugSymbols() []*symbolTable {
	if debug, err := f.DebugFile(); err == nil {
		table, err := debug.staticSymbols()
		_ = debug.Close() // read only
		if err == nil && table.count() > 0 {
			return []*symbolTable{table}
		}
	}
	if table, err := f.miniSymbols(); err == nil {
		return []*symbolTable{table}
	}
	if table, err := f.goSymbols(); err == nil {
		return []*symbolTable{table}
	}
	return nil
}

// unknown is ErrNoSymbol with what the person may have meant.
func (f *File) unknown(name string, tables []*symbolTable) error {
	closest := symname.NewSuggestions(name, maxListed)
	for _, t := range tables {
		t.each(&f.layout, filter{wants: func(candidate []byte) bool { closest.Add(candidate); return false }}, nil)
	}
	err := fmt.Errorf("%w: %s in %s", ErrNoSymbol, name, f.name)
	if names := closest.Names(); len(names) > 0 {
		return fmt.Errorf("%w; close to it: %s", err, strings.Join(names, ", "))
	}
	if len(tables) < 2 {
		return fmt.Errorf("%w, which is stripped: only symbols that it exports are known; install its debug symbols", err)
	}
	return err
}

// maxMiniDebugBytes bounds .gnu_debugdata, packed and not. Distributions pack about a
// twentieth of a file into it.
const maxMiniDebugBytes = 64 << 20

// miniSymbols returns the symbol table of the ELF file within .gnu_debugdata
// (MiniDebugInfo), which distributions leave in stripped programs so that stacks can
// be told: the functions that .dynsym lacks. [ErrNoSection] if there is none.
func (in *symbols) miniSymbols() (*symbolTable, error) {
	return in.kept.mini.get(in.readMiniSymbols)
}

func (in *symbols) readMiniSymbols() (*symbolTable, error) {
	packed, err := in.Section(".gnu_debugdata", maxMiniDebugBytes)
	if err != nil {
		return nil, err
	}
	data, err := bounded.Unxz(".gnu_debugdata", packed, maxMiniDebugBytes)
	if err != nil {
		return nil, unpacking(err)
	}
	inner, err := readLayout(in.name+" (.gnu_debugdata)", reader{at: bytes.NewReader(data), size: uint64(len(data))})
	if err != nil {
		return nil, err
	}
	return (&linking{layout: inner}).readStaticSymbols()
}
