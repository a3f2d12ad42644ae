// SPDX-License-Identifier: Apache-2.0

package objfile

import (
	"bytes"
	"errors"
	"fmt"
	"path"
	"strings"
)

// ErrTooManySymbols says that a pattern matches more than [MaxMatches].
var ErrTooManySymbols = errors.New("pattern matches too many symbols")

// MaxMatches is the greatest number of symbols that Match returns.
const MaxMatches = 4096

// symbols are the symbol tables of a file.
type symbols struct {
	linking
	kept struct{ dynamic, static, mini keptTable[symbolTable] }
}

func (in *symbols) dynamicSymbols() (*symbolTable, error) {
	return in.kept.dynamic.get(in.readDynamicSymbols)
}

func (in *symbols) staticSymbols() (*symbolTable, error) {
	return in.kept.static.get(in.readStaticSymbols)
}

// Symbol finds a symbol by name, in .dynsym and then in .symtab. Of several
// versions it takes the default one; "name@VERSION" asks for another.
// [ErrNoSymbol] if the file does not define it.
func (in *symbols) Symbol(name string) (Symbol, error) { return in.SymbolOf(name, Any) }

// SymbolOf is Symbol for one kind only.
func (in *symbols) SymbolOf(name string, kind SymbolKind) (Symbol, error) {
	name, version, versioned := strings.Cut(strings.Replace(name, "@@", "@", 1), "@")
	var found *Symbol
	err := in.each(named(name), func(s Symbol) bool {
		if !s.Is(kind) || versioned && s.Version != version {
			return true
		}
		if found == nil || s.Default && !found.Default {
			found = &s
		}
		return !found.Default && !versioned
	})
	switch {
	case err != nil:
		return Symbol{}, err
	case found == nil:
		return Symbol{}, fmt.Errorf("%w: %s in %s", ErrNoSymbol, name, in.name)
	}
	return *found, nil
}

// Match returns the symbols of a kind whose names match a pattern (path.Match),
// each address and name once. It stops with [ErrTooManySymbols] and what it
// has at [MaxMatches].
func (in *symbols) Match(pattern string, kind SymbolKind) ([]Symbol, error) {
	matches, err := matcher(pattern)
	if err != nil {
		return nil, err
	}
	type identity struct {
		name  string
		value uint64
	}
	seen := make(map[identity]bool)
	var symbols []Symbol
	full, names := false, newNames()
	err = in.each(matches, func(s Symbol) bool {
		id := identity{s.Name, s.Value}
		if !s.Is(kind) || seen[id] {
			return true
		}
		if full = len(symbols) == MaxMatches || names.Spend(len(s.Name)) != nil; full {
			return false
		}
		seen[id] = true
		symbols = append(symbols, s)
		return true
	})
	if full {
		err = fmt.Errorf("%w: more than %d match %q, or their names have more than %d bytes", ErrTooManySymbols, MaxMatches, pattern, maxFoundNames)
	}
	return symbols, err
}

// named is a filter for one name.
func named(name string) filter {
	return filter{append([]byte(name), 0), func(candidate []byte) bool { return string(candidate) == name }}
}

// matcher compiles a pattern.
func matcher(pattern string) (filter, error) {
	if _, err := path.Match(pattern, ""); err != nil {
		return filter{}, fmt.Errorf("pattern %q: %w", pattern, err)
	}
	literal := []byte(longestLiteral(pattern))
	return filter{literal, func(name []byte) bool {
		if !bytes.Contains(name, literal) {
			return false
		}
		ok, err := path.Match(pattern, string(name))
		return ok && err == nil
	}}, nil
}

// longestLiteral returns the longest part of a pattern that every match
// contains. What follows a bracket or a backslash is not looked at.
func longestLiteral(pattern string) (longest string) {
	if special := strings.IndexAny(pattern, `[\`); special >= 0 {
		pattern = pattern[:special]
	}
	for part := range strings.FieldsFuncSeq(pattern, func(r rune) bool { return r == '*' || r == '?' }) {
		if len(part) > len(longest) {
			longest = part
		}
	}
	return longest
}

// each calls visit for every defined symbol with a wanted name until it
// returns false: first those of .dynsym, then those of .symtab.
func (in *symbols) each(want filter, visit func(Symbol) bool) error {
	dynamic, err := in.dynamicSymbols()
	if err != nil {
		return err
	}
	stopped := false
	dynamic.each(&in.layout, want, func(s Symbol) bool {
		stopped = !visit(s)
		return !stopped
	})
	if stopped {
		return nil
	}
	static, err := in.staticSymbols()
	if err != nil {
		return err
	}
	static.each(&in.layout, want, visit)
	return nil
}
