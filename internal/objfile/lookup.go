// SPDX-License-Identifier: Apache-2.0

package objfile

import (
	"bytes"
	"debug/elf"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/attune-hpc/attune/internal/bounded"
	"github.com/attune-hpc/attune/internal/symname"
)

// ErrAmbiguous says that a name stands for several functions or variables.
var ErrAmbiguous = errors.New("ambiguous symbol name")

// AmbiguousError lists them. It wraps [ErrAmbiguous].
type AmbiguousError struct {
	// Name that was asked for.
	Name string
	// Choices, at most [MaxMatches], in the order of addresses.
	Choices []Found
}

// maxListed is how many choices or suggestions an error lists.
const maxListed = 5

// Error lists the first few choices.
func (e *AmbiguousError) Error() string {
	listed := make([]string, 0, maxListed)
	for _, c := range e.Choices[:min(len(e.Choices), maxListed)] {
		listed = append(listed, c.full())
	}
	more := ""
	if n := len(e.Choices) - len(listed); n > 0 {
		more = fmt.Sprintf(" and %d more", n)
	}
	return fmt.Sprintf("%v: %s may be %s%s; name one of them in full, or all by a pattern",
		ErrAmbiguous, e.Name, strings.Join(listed, ", "), more)
}

// Unwrap returns ErrAmbiguous.
func (e *AmbiguousError) Unwrap() error { return ErrAmbiguous }

// Found is one address with all of its names.
type Found struct {
	// Symbol under its best name: a global one before a weak and a local one.
	Symbol
	// Aliases are the other names that the query matched too, at most 64.
	Aliases []string
}

// Display returns the demangled name.
func (f Found) Display() string { return symname.Demangle(f.Name) }

// full is a name that is not ambiguous.
func (f Found) full() string {
	switch {
	case f.Source != "":
		return f.Display() + "@" + f.Source
	case f.Version != "":
		return f.Display() + "@" + f.Version
	}
	return f.Display()
}

// LookupOptions of [File.Lookup].
type LookupOptions struct {
	// Kind of the symbols.
	Kind SymbolKind
	// DebugDirs to look for a separate debug file in, where the file itself
	// has no full symbol table.
	DebugDirs DebugDirs
	// Limit is the greatest number of addresses; 0: [MaxMatches].
	Limit int
	// Suggest has [ErrNoSymbol] say what is close to the name, which takes several
	// times as long as finding that it is not there.
	Suggest bool
}

// Lookup finds what a name or pattern stands for (see [symname.Parse]), in
// .dynsym and .symtab, and if there is no .symtab, in the separate debug file,
// and without that in .gnu_debugdata, or what a Go program has for itself.
// Addresses come in ascending order, each once.
//
// A pattern may match any number of addresses up to the limit, beyond it
// [ErrTooManySymbols] comes with what there is. A name stands for one address,
// or for several only if the source has one function for them (constructors);
// otherwise the error is an [*AmbiguousError].
//
// It looks through the tables anew each time: 10 to 25 ms for node (99 MB with
// 250,000 symbols; BenchmarkLookup). Callers that ask often remember the answer.
func (f *File) Lookup(query string, options LookupOptions) ([]Found, error) {
	q, err := symname.Parse(query)
	if err != nil {
		return nil, err
	}
	s := search{
		query: q, kind: options.Kind, limit: options.Limit, byAddress: make(map[uint64]*Found),
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
		s.table(f, t)
	}
	if !s.settled() && tables[len(tables)-1].dynamic {
		for _, t := range f.debugSymbols(options.DebugDirs) {
			s.table(f, t)
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
func (f *File) debugSymbols(dirs DebugDirs) []*symbolTable {
	if debug, err := f.DebugFile(dirs); err == nil {
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

// search collects what fits a query best.
type search struct {
	query     symname.Query
	kind      SymbolKind
	limit     int
	grade     symname.Grade
	byAddress map[uint64]*Found
	overflow  bool
	work      *bounded.Work
	names     *bounded.Work // that are found
	err       error
}

const (
	// maxLookup bounds the bytes of names that one look-up compares, those several
	// times that are to be demangled: node has 20 MB.
	maxLookup = 1 << 30
	// demangling takes some 50 ns for a byte, comparing one.
	demangling = 16
	// maxFoundNames bounds the bytes of the names that are found.
	maxFoundNames = 4 << 20
	// maxAliases bounds the other names of one address.
	maxAliases = 64
)

// newNames bounds what is kept of names.
func newNames() *bounded.Work { return bounded.NewWork("keeping names", maxFoundNames) }

func (s *search) table(f *File, t *symbolTable) {
	grade := symname.None
	t.each(f, filter{s.query.Part(), func(name []byte) bool {
		if !s.spend(name) {
			return false
		}
		// .symtab writes versions into names.
		if at := slices.Index(name, '@'); at > 0 {
			name = name[:at]
		}
		grade = s.query.Grade(name)
		return grade != symname.None && grade >= s.grade
	}}, func(symbol Symbol) bool {
		if symbol.Is(s.kind) && s.wantsVersion(symbol) {
			s.add(symbol, grade)
		}
		return true
	})
}

// spend says whether a name may be looked at.
func (s *search) spend(name []byte) bool {
	steps := len(name)
	if bytes.HasPrefix(name, []byte("_Z")) || bytes.HasPrefix(name, []byte("_R")) {
		steps *= demangling
	}
	if s.err == nil {
		s.err = s.work.Spend(steps)
	}
	return s.err == nil
}

// settled says that nothing better can come: a function that was asked for
// by its linker name is exported, as most are that anybody asks for.
func (s *search) settled() bool {
	for _, found := range s.byAddress {
		if s.grade == symname.Linker && found.Bind != elf.STB_LOCAL {
			return true
		}
	}
	return false
}

// wantsVersion: what follows the @ of a query is a version, or the source file
// of a local symbol.
func (s *search) wantsVersion(symbol Symbol) bool {
	wanted := s.query.Version
	return wanted == "" || wanted == symbol.Version || wanted == symbol.Source
}

func (s *search) add(symbol Symbol, grade symname.Grade) {
	if grade > s.grade { // what fitted less is not meant
		s.grade, s.overflow = grade, false
		clear(s.byAddress)
	}
	if err := s.names.Spend(len(symbol.Name)); err != nil {
		s.overflow = true
		return
	}
	known := s.byAddress[symbol.Value]
	switch {
	case known == nil && len(s.byAddress) == s.limit:
		s.overflow = true
	case known == nil:
		s.byAddress[symbol.Value] = &Found{Symbol: symbol}
	default:
		known.alias(symbol)
	}
}

// alias takes in another name of the same address.
func (f *Found) alias(symbol Symbol) {
	other := symbol.Name
	if rank(symbol) > rank(f.Symbol) {
		other, f.Symbol = f.Name, symbol
	}
	if other != f.Name && len(f.Aliases) < maxAliases && !slices.Contains(f.Aliases, other) {
		f.Aliases = append(f.Aliases, other)
	}
}

// rank orders the names of one address: the default version and what other
// objects can refer to come first.
func rank(s Symbol) (n int) {
	switch s.Bind {
	case elf.STB_GLOBAL:
		n = 4
	case elf.STB_WEAK:
		n = 2
	}
	if s.Default {
		n++
	}
	return n
}

func (s *search) result() ([]Found, error) {
	all := make([]Found, 0, len(s.byAddress))
	for _, found := range s.byAddress {
		slices.Sort(found.Aliases)
		all = append(all, *found)
	}
	slices.SortFunc(all, func(a, b Found) int {
		if a.Value < b.Value {
			return -1
		}
		return 1
	})
	if s.overflow {
		return all, fmt.Errorf("%w: more than %d match %q, or their names have more than %d bytes; narrow it down",
			ErrTooManySymbols, s.limit, s.query.Text, maxFoundNames)
	}
	if s.grade == symname.Pattern {
		return all, nil
	}
	return oneOf(s.query.Text, all)
}

// oneOf refuses a name that stands for several things. As for the linker, old
// versions give way to the default one and local symbols to a global one.
func oneOf(name string, all []Found) ([]Found, error) {
	all = prefer(all, func(f Found) bool { return f.Default })
	all = prefer(all, func(f Found) bool { return f.Bind != elf.STB_LOCAL })
	for _, other := range all[1:] {
		// Constructors and destructors have several symbols of one name.
		if other.Name == all[0].Name || other.Display() != all[0].Display() {
			return nil, &AmbiguousError{Name: name, Choices: all}
		}
	}
	return all, nil
}

// prefer keeps what is better, if there is any.
func prefer(all []Found, better func(Found) bool) []Found {
	if !slices.ContainsFunc(all, better) {
		return all
	}
	return slices.DeleteFunc(all, func(f Found) bool { return !better(f) })
}

// unknown is ErrNoSymbol with what the person may have meant.
func (f *File) unknown(name string, tables []*symbolTable) error {
	closest := symname.NewSuggestions(name, maxListed)
	for _, t := range tables {
		t.each(f, filter{wants: func(candidate []byte) bool { closest.Add(candidate); return false }}, nil)
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
