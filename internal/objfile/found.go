// SPDX-License-Identifier: Apache-2.0

package objfile

import (
	"debug/elf"
	"errors"
	"fmt"
	"strings"
)

// ErrAmbiguous says that a name stands for several functions or variables.
var ErrAmbiguous = errors.New("ambiguous symbol name")

// AmbiguousError lists them. It wraps [ErrAmbiguous].
type AmbiguousError struct {
	// Name that was asked for.
	Name string
	// Choices, at most [MaxMatches], in the order of addresses.
	Choices []Symbol
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

// full is a name that is not ambiguous.
func (s Symbol) full() string {
	switch {
	case s.Source != "":
		return s.Display() + "@" + s.Source
	case s.Version != "":
		return s.Display() + "@" + s.Version
	}
	return s.Display()
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
