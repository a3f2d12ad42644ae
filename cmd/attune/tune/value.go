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
	digits, scale := quantity.CutUnit(text)
	base := 10
	if strings.HasPrefix(strings.TrimLeft(text, "+-"), "0x") {
		digits, scale, base = text, 1, 0
	}
	if n, err := strconv.ParseInt(digits, base, 64); err == nil && n*scale/scale == n {
		return &attunev1.Value{Kind: &attunev1.Value_Integer{Integer: n * scale}}, nil
	}
	if n, err := strconv.ParseUint(text, base, 64); err == nil {
		return &attunev1.Value{Kind: &attunev1.Value_Unsigned{Unsigned: n}}, nil
	}
	if n, err := strconv.ParseFloat(text, 64); err == nil && !strings.Contains(text, "_") {
		return &attunev1.Value{Kind: &attunev1.Value_Real{Real: n}}, nil
	}
	return nil, fmt.Errorf("%q is no number: write 64, -1, 0x40, 64K, 2.5, true or false", text)
}

// parseArgument reads an argument of a call: a number, or else a text, which stands in double
// quotes if it looks like a number. Words are texts, true and inf too: what a function takes
// is not known, and one that wants an address ends the process by a number.
func parseArgument(text string) *attunev1.Value {
	if first := strings.TrimLeft(text, "+-."); first != "" && '0' <= first[0] && first[0] <= '9' {
		if value, err := parseValue(text); err == nil {
			return value
		}
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
