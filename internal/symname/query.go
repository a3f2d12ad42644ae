// SPDX-License-Identifier: Apache-2.0

package symname

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"unicode"
)

// ErrQuery says that a text cannot be the name or pattern of a symbol.
var ErrQuery = errors.New("invalid symbol name")

// Grade is how well a name fits a query. Of the names of a file only those of
// the best grade are meant: "operator*" is a name before it is a pattern.
type Grade int

// Grades, the worst first.
const (
	// None: the name does not fit.
	None Grade = iota
	// Pattern: the query is a pattern that matches one of the name's forms.
	Pattern
	// Generic: the query is the name without parameters and template arguments.
	Generic
	// NoParameters: the query is the name without parameters.
	NoParameters
	// Whole: the query is the whole demangled name.
	Whole
	// Linker: the query is the name as the linker has it.
	Linker
)

// Query is a symbol name or pattern as people write it. It is immutable.
type Query struct {
	// Text of the query without its version.
	Text string
	// Version that follows an @, "" if any will do.
	Version string

	pattern *regexp.Regexp // nil: no pattern
	literal []byte         // must be in every linker name that matches
	word    []byte         // must be in every mangled name that matches
}

// Parse understands a name or pattern:
//
//	malloc, _ZN2ns1fEi   as the linker has it
//	ns::f(int)           demangled
//	ns::f                demangled, without parameters; also without template arguments
//	mem*, ns::Matrix::*  a pattern: * is any text, ? one character, [abc] one of
//	                     these, \ takes the next one literally
//	memcpy@GLIBC_2.14    of one version; of a static function, helper@parse.c
//	                     is the one of that source file
//
// It returns an error that wraps [ErrQuery] for the empty text and for one
// that is longer than any name that is looked at.
func Parse(text string) (Query, error) {
	q := Query{Text: text}
	if at := strings.IndexByte(text, '@'); at > 0 {
		q.Text, q.Version = text[:at], strings.TrimLeft(text[at:], "@")
	}
	if q.Text == "" || len(text) > maxMangled || strings.ContainsAny(text, "\x00\n") {
		return Query{}, fmt.Errorf("%w: %.60q", ErrQuery, text)
	}
	if strings.ContainsAny(q.Text, `*?[\`) {
		pattern, err := regexp.Compile(translate(q.Text))
		if err != nil {
			return Query{}, fmt.Errorf("%w: %.60q: %w", ErrQuery, text, err)
		}
		q.pattern, q.literal = pattern, []byte(longest(literals(q.Text)))
	}
	q.word = []byte(longest(words(q.Text)))
	return q, nil
}

// IsPattern says whether the query may mean several functions. A name such as
// "operator*" is taken for a pattern here.
func (q Query) IsPattern() bool { return q.pattern != nil }

// IsIdentifier says whether the query is one, as functions of C are named: the whole
// demangled name of a function always has parentheses.
func (q Query) IsIdentifier() bool {
	return !strings.ContainsFunc(q.Text, func(r rune) bool { return r != '_' && !unicode.IsLetter(r) && !unicode.IsDigit(r) })
}

// Part is in every linker name that fits, as bytes one after the other; empty: nothing
// is.
func (q Query) Part() []byte {
	if q.pattern != nil && !bytes.Contains(q.literal, q.word) {
		return nil
	}
	return q.word
}

// Grade says how well a linker name, without version, fits. Most names are
// refused by a search for a few bytes.
func (q Query) Grade(name []byte) Grade {
	if string(name) == q.Text {
		return Linker
	}
	mangled := bytes.HasPrefix(name, []byte("_Z")) || bytes.HasPrefix(name, []byte("_R"))
	if !mangled && q.pattern == nil {
		return None
	}
	if q.pattern != nil && bytes.Contains(name, q.literal) && q.pattern.Match(name) {
		return Pattern
	}
	if !mangled || !bytes.Contains(name, q.word) {
		return None
	}
	return q.demangledGrade(string(name))
}

func (q Query) demangledGrade(name string) Grade {
	whole := Demangle(name)
	if whole == name {
		return None
	}
	if whole == q.Text {
		return Whole
	}
	function := Function(name)
	switch {
	case function == q.Text:
		return NoParameters
	case strings.IndexByte(function, '<') >= 0 && generic(name) == q.Text:
		return Generic
	case q.pattern != nil && (q.pattern.MatchString(whole) || q.pattern.MatchString(function)):
		return Pattern
	}
	return None
}

func longest(parts []string) (best string) {
	for _, part := range parts {
		if len(part) > len(best) {
			best = part
		}
	}
	return best
}
