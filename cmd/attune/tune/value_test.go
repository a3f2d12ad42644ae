// SPDX-License-Identifier: Apache-2.0

package tune

import (
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/testing/protocmp"

	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

func TestParseValue(t *testing.T) {
	integer := func(n int64) *attunev1.Value {
		return &attunev1.Value{Kind: &attunev1.Value_Integer{Integer: n}}
	}
	tests := map[string]*attunev1.Value{
		"64": integer(64), "-1": integer(-1), "0x40": integer(64), "-0x40": integer(-64), "010": integer(10), "0b1": nil, "1_000": nil, "64K": integer(65536), "1g": integer(1 << 30), "0x1K": nil,
		"9223372036854775807K": nil, "": nil, "K": nil, "seven": nil, "1.5K": nil,
		"18446744073709551615": {Kind: &attunev1.Value_Unsigned{Unsigned: 1<<64 - 1}},
		"2.5":                  {Kind: &attunev1.Value_Real{Real: 2.5}},
		"1e3":                  {Kind: &attunev1.Value_Real{Real: 1000}},
		"true":                 {Kind: &attunev1.Value_Truth{Truth: true}},
	}
	for text, want := range tests {
		got, err := parseValue(text)
		if diff := cmp.Diff(want, got, protocmp.Transform()); diff != "" || (err != nil) != (want == nil) {
			t.Errorf("%q: %v %s", text, err, diff)
		}
	}
}

func TestParseArgument(t *testing.T) {
	for text, want := range map[string]string{
		"word": "word", `"4"`: "4", `two words`: "two words", `"`: `"`, "": "", `'4'`: `'4'`, "true": "true", "inf": "inf", "-nan": "-nan",
	} {
		if got := parseArgument(text).GetText(); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
	if got := parseArgument("4").GetInteger(); got != 4 {
		t.Errorf("a number: %d", got)
	}
}

func TestParseSymbol(t *testing.T) {
	directory, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]symbolName{
		"libc.so.6:malloc":  {"libc.so.6", "malloc"},
		"malloc":            {"", "malloc"},
		"ns::f":             {"", "ns::f"},
		"prog:ns::f(int)":   {"prog", "ns::f(int)"},
		"prog:counter@a.c":  {"prog", "counter@a.c"},
		"./tune.go:symbol":  {directory + "/tune.go", "symbol"},
		"/nowhere/at/all:x": {"/nowhere/at/all", "x"},
	} {
		if got, err := parseSymbol(text); err != nil || got != want {
			t.Errorf("%q: %+v, %v, want %+v", text, got, err, want)
		}
	}
	for _, text := range []string{"", "libc.so.6:"} {
		if got, err := parseSymbol(text); err == nil {
			t.Errorf("%q: %+v", text, got)
		}
	}
}
