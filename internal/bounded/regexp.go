// SPDX-License-Identifier: Apache-2.0

package bounded

import (
	"fmt"
	"regexp"
	"regexp/syntax"
)

const (
	// maxPattern bounds the text of a regular expression, bytes.
	maxPattern = 1 << 10
	// maxSteps bounds what it becomes: about as many steps are taken for each byte
	// that is looked at, and each has some 40 bytes.
	maxSteps = 500
)

// Regexp compiles a regular expression that somebody else wrote: [ErrLimit] for one that
// is long, or becomes long by its repetitions. regexp's own limits are a gigabyte of
// memory, and minutes for a line of text.
func Regexp(text string) (*regexp.Regexp, error) {
	if len(text) > maxPattern {
		return nil, exceeds("regular expression", uint64(len(text)), maxPattern)
	}
	parsed, err := syntax.Parse(text, syntax.Perl)
	if err != nil {
		return nil, err
	}
	if n := steps(parsed); n > maxSteps {
		return nil, fmt.Errorf("%w: regular expression %.40q has %d steps with its repetitions, at most %d", ErrLimit, text, n, maxSteps)
	}
	return regexp.Compile(text)
}

// steps is about how many instructions an expression becomes. Its own limits keep it
// far from overflowing: nested repetitions are a thousand altogether.
func steps(e *syntax.Regexp) int {
	n := 1
	if e.Op == syntax.OpLiteral {
		n = len(e.Rune)
	}
	for _, sub := range e.Sub {
		n += steps(sub)
	}
	if e.Op == syntax.OpRepeat {
		n *= max(e.Min+1, e.Max, 1)
	}
	return n
}
