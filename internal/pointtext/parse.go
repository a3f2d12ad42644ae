// SPDX-License-Identifier: Apache-2.0

package pointtext

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/attune-hpc/attune/internal/symname"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// Point is a measure point that was read.
type Point struct {
	// Spec is what to ask a controller for; its id is the text.
	Spec *attunev1.MeasurePoint
	// Value is what people call the point's value, where one is summed up or
	// recorded; empty: there is none.
	Value string
}

// ErrSyntax says that the text is no measure point; the message says what to write.
var ErrSyntax = errors.New("invalid measure point")

// maxText bounds a point; demangled names are long.
const maxText = 16 << 10

// clauses are the words that end the name of a function.
var clauses = []string{"take", "if", "every", "each", "by", "sum"}

// IsClause reports whether a word begins a clause of a point. Alone it is the name of a
// function, and more likely a point that was meant to be in quotes.
func IsClause(word string) bool { return slices.Contains(clauses, word) }

// Parse reads a measure point. The error wraps [ErrSyntax].
func Parse(text string) (Point, error) {
	point, err := parse(text)
	if err != nil {
		return Point{}, fmt.Errorf("%w: %w", ErrSyntax, err)
	}
	return point, nil
}

func parse(text string) (Point, error) {
	switch {
	case !utf8.ValidString(text):
		return Point{}, errors.New("it is not UTF-8")
	case len(text) > maxText:
		return Point{}, fmt.Errorf("it is longer than %d bytes", maxText)
	}
	head, rest := split(text)
	spec := &attunev1.MeasurePoint{Id: text, Place: attunev1.Place_PLACE_ENTRY, Delivery: attunev1.Delivery_DELIVERY_AGGREGATE}
	if err := target(spec, head); err != nil {
		return Point{}, err
	}
	if err := stray(head); err != nil {
		return Point{}, err
	}
	list, err := tokens(text[rest:], rest)
	if err != nil {
		return Point{}, err
	}
	p := &parser{tokens: list, spec: spec, seen: make(map[string]bool)}
	for !p.is(end, "") {
		if err := p.clause(); err != nil {
			return Point{}, err
		}
	}
	return p.finish()
}

// split finds where the clauses begin: at the first of their words that stands
// alone, outside the parentheses of a demangled name.
func split(text string) (head string, rest int) {
	depth := 0
	for at := 0; at < len(text); {
		n := strings.IndexAny(text[at:], " \t")
		if n < 0 {
			n = len(text) - at
		}
		one := text[at : at+n]
		if depth <= 0 && at > 0 && slices.Contains(clauses, one) {
			return strings.TrimSpace(text[:at]), at
		}
		depth += strings.Count(one, "(") - strings.Count(one, ")")
		at += n + 1
	}
	return strings.TrimSpace(text), len(text)
}

// library is the name of one: libc.so.6, libm-2.31.so, libcrypto.so.1.0.2k, libfoo.so*. In
// the names of Go functions .so is the beginning of a word.
var library = regexp.MustCompile(`\.so(\.?[0-9*?[][^/]*)?$`)

// isLibrary says whether an object or a pattern of such is a shared library.
func isLibrary(object string) bool { return library.MatchString(object) }

const usdtPrefix = "usdt:"

// places are the words after the percent sign.
var places = map[string]attunev1.Place{
	"entry":  attunev1.Place_PLACE_ENTRY,
	"return": attunev1.Place_PLACE_EXIT,
	"time":   attunev1.Place_PLACE_BOTH,
}

// target reads [OBJECT:]FUNCTION[%PLACE] or usdt:OBJECT:PROVIDER:NAME.
func target(spec *attunev1.MeasurePoint, head string) error {
	if rest, static := strings.CutPrefix(head, usdtPrefix); static {
		parts := strings.Split(rest, ":")
		if len(parts) != 3 || slices.Contains(parts, "") {
			return errors.New("it names no static probe: write usdt:OBJECT:PROVIDER:NAME, for example usdt:libstdc++.so.6:libstdcxx:throw")
		}
		spec.Target = &attunev1.MeasurePoint_Usdt{Usdt: &attunev1.UsdtTarget{Object: parts[0], Provider: parts[1], Name: parts[2]}}
		return nil
	}
	object, function, ok := strings.Cut(head, ":")
	switch {
	case !ok && isLibrary(head), ok && (object == "" || function == ""), head == "":
		return errors.New("it names no function: write FUNCTION or OBJECT:FUNCTION, for example malloc or libc.so.6:malloc")
	case !ok || strings.HasPrefix(function, ":"): // a name of C++ or Rust (ns::f) has colons of its own
		object, function = "", head
	}
	name, err := place(spec, function)
	if err != nil {
		return err
	}
	if _, err := symname.Parse(name); err != nil {
		return err
	}
	spec.Target = &attunev1.MeasurePoint_Function{Function: &attunev1.FunctionTarget{
		Object: object, Symbols: []string{name},
		// A library's function is called from other objects above all, and
		// watching that needs no privileges.
		DynamicCallsOnly: isLibrary(object),
		OneObject:        object == "",
	}}
	return nil
}

// place takes %PLACE off a function. Names of Go functions hold escapes such as
// %2e, which are never a word of letters alone.
func place(spec *attunev1.MeasurePoint, function string) (name string, err error) {
	at := strings.LastIndexByte(function, '%')
	if at < 0 || strings.Trim(function[at+1:], "abcdefghijklmnopqrstuvwxyz") != "" {
		return function, nil
	}
	where, ok := places[function[at+1:]]
	if !ok {
		return "", fmt.Errorf("there is no place %%%s: write %%entry, %%return, or %%time for how long the call takes", function[at+1:])
	}
	spec.Place = where
	return function[:at], nil
}
