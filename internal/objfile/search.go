// SPDX-License-Identifier: Apache-2.0

package objfile

import (
	"bytes"
	"cmp"
	"debug/elf"
	"fmt"
	"maps"
	"slices"

	"github.com/attune-hpc/attune/internal/bounded"
	"github.com/attune-hpc/attune/internal/symname"
)

// search collects what fits a query best.
type search struct {
	query     symname.Query
	kind      SymbolKind
	limit     int
	grade     symname.Grade
	byAddress map[uint64]Symbol
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
)

func (s *search) table(l *layout, t *symbolTable) {
	grade := symname.None
	t.each(l, filter{s.query.Part(), func(name []byte) bool {
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
	switch known, ok := s.byAddress[symbol.Value]; {
	case !ok && len(s.byAddress) == s.limit:
		s.overflow = true
	case !ok || rank(symbol) > rank(known):
		s.byAddress[symbol.Value] = symbol
	}
}

func (s *search) result() ([]Symbol, error) {
	all := slices.SortedFunc(maps.Values(s.byAddress), func(a, b Symbol) int { return cmp.Compare(a.Value, b.Value) })
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
func oneOf(name string, all []Symbol) ([]Symbol, error) {
	all = prefer(all, func(s Symbol) bool { return s.Default })
	all = prefer(all, func(s Symbol) bool { return s.Bind != elf.STB_LOCAL })
	for _, other := range all[1:] {
		// Constructors and destructors have several symbols of one name.
		if other.Name == all[0].Name || other.Display() != all[0].Display() {
			return nil, &AmbiguousError{Name: name, Choices: all}
		}
	}
	return all, nil
}

// prefer keeps what is better, if there is any.
func prefer(all []Symbol, better func(Symbol) bool) []Symbol {
	if !slices.ContainsFunc(all, better) {
		return all
	}
	return slices.DeleteFunc(all, func(s Symbol) bool { return !better(s) })
}
