// SPDX-License-Identifier: Apache-2.0

package objfile

import (
	"errors"
	"fmt"
	"strings"
)

// ErrTooManySymbols says that a pattern matches more than [MaxMatches].
var ErrTooManySymbols = errors.New("pattern matches too many symbols")

// MaxMatches is the greatest number of symbols that a look-up returns.
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

// named is a filter for one name.
func named(name string) filter {
	return filter{append([]byte(name), 0), func(candidate []byte) bool { return string(candidate) == name }}
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
