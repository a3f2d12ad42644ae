// SPDX-License-Identifier: Apache-2.0

package objfile

import (
	"debug/elf"
	"errors"
	"fmt"
	"slices"
	"strings"

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

// maxAliases bounds the other names of one address.
const maxAliases = 64

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
