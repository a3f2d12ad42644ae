// SPDX-License-Identifier: Apache-2.0

package config

import (
	"errors"
	"strings"

	"github.com/attune-hpc/attune/internal/symname"
)

// Probe says what to count, as a person names it.
type Probe struct {
	// Object is a pattern for the base name or path of a binary or library.
	Object string
	// Symbol is the name or pattern of functions; see [symname.Parse]. Empty
	// for a static probe.
	Symbol string
	// Provider and Name are those of a static probe (USDT); patterns.
	Provider, Name string
}

// usdtPrefix begins the name of a static probe.
const usdtPrefix = "usdt:"

// ParseProbe understands OBJECT:SYMBOL and usdt:OBJECT:PROVIDER:NAME. The
// error says what is wrong, without the text itself.
func ParseProbe(text string) (Probe, error) {
	if rest, static := strings.CutPrefix(text, usdtPrefix); static {
		parts := strings.Split(rest, ":")
		if len(parts) != 3 || parts[0] == "" || parts[1] == "" || parts[2] == "" {
			return Probe{}, errors.New("names no static probe: write usdt:OBJECT:PROVIDER:NAME, for example usdt:libstdc++.so.6:libstdcxx:throw")
		}
		return Probe{Object: parts[0], Provider: parts[1], Name: parts[2]}, nil
	}
	object, symbol, ok := strings.Cut(text, ":")
	if !ok || object == "" || symbol == "" {
		return Probe{}, errors.New("names no function: write OBJECT:SYMBOL, for example libc.so.6:malloc")
	}
	if strings.HasPrefix(symbol, ":") {
		return Probe{}, errors.New("names no object: write OBJECT:SYMBOL, for example solver:" + text)
	}
	if _, err := symname.Parse(symbol); err != nil {
		return Probe{}, err
	}
	return Probe{Object: object, Symbol: symbol}, nil
}
