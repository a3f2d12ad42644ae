// SPDX-License-Identifier: Apache-2.0

package tune

import (
	"fmt"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/attune-hpc/attune/internal/quantity"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// parseValue reads a number or truth value: 64, -1, 0x40, 64K, 2.5, true.
func parseValue(text string) (*attunev1.Value, error) {
	if text == "true" || text == "false" {
		return &attunev1.Value{Kind: &attunev1.Value_Truth{Truth: text == "true"}}, nil
	}
	digits, scale := scaled(text)
	if n, err := strconv.ParseInt(digits, 0, 64); err == nil && n*scale/scale == n {
		return &attunev1.Value{Kind: &attunev1.Value_Integer{Integer: n * scale}}, nil
	}
	if n, err := strconv.ParseUint(text, 0, 64); err == nil {
		return &attunev1.Value{Kind: &attunev1.Value_Unsigned{Unsigned: n}}, nil
	}
	if n, err := strconv.ParseFloat(text, 64); err == nil {
		return &attunev1.Value{Kind: &attunev1.Value_Real{Real: n}}, nil
	}
	return nil, fmt.Errorf("%q is no number: write 64, -1, 0x40, 64K, 2.5, true or false", text)
}

// scaled takes a unit off.
func scaled(text string) (digits string, scale int64) {
	if strings.HasPrefix(strings.TrimLeft(text, "+-"), "0x") {
		return text, 1
	}
	return quantity.CutUnit(text)
}

// parseArgument reads an argument of a call: a value, or else a text, which
// stands in double quotes if it looks like a value.
func parseArgument(text string) *attunev1.Value {
	if value, err := parseValue(text); err == nil {
		return value
	}
	if unquoted, err := strconv.Unquote(text); err == nil && strings.HasPrefix(text, `"`) {
		text = unquoted
	}
	return &attunev1.Value{Kind: &attunev1.Value_Text{Text: text}}
}

// symbolName is OBJECT:SYMBOL. Without an object it is the program's, or
// whichever object has it.
type symbolName struct{ object, symbol string }

func (s symbolName) String() string {
	if s.object == "" {
		return s.symbol
	}
	return s.object + ":" + s.symbol
}

// parseSymbol splits at the first colon that is no part of a C++ name. An
// object with a slash is a file: its path is made absolute, as the kernel tells
// it.
func parseSymbol(text string) (symbolName, error) {
	s := symbolName{symbol: text}
	if object, symbol, found := strings.Cut(text, ":"); found && !strings.HasPrefix(symbol, ":") {
		s = symbolName{object, symbol}
	}
	if s.symbol == "" {
		return s, fmt.Errorf("%q names no symbol: write OBJECT:SYMBOL, e.g. libc.so.6:malloc_trim", text)
	}
	if strings.Contains(s.object, "/") {
		path, err := filepath.Abs(s.object)
		if err != nil {
			return s, err
		}
		if target, err := filepath.EvalSymlinks(path); err == nil {
			path = target
		}
		s.object = path
	}
	return s, nil
}
