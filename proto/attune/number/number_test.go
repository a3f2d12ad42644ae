// SPDX-License-Identifier: Apache-2.0

package number

import (
	"math"
	"testing"
)

func TestParse(t *testing.T) {
	for text, want := range map[string]float64{"0": 0, "-1.5": -1.5, "2e3": 2000} {
		if got, err := Parse(text); got != want || err != nil {
			t.Errorf("%q: %v, %v; want %v", text, got, err, want)
		}
	}
	for _, text := range []string{"", "inf", "-Inf", "nan", "1e999", "1 2", "5K"} {
		if got, err := Parse(text); err == nil {
			t.Errorf("%q is %v", text, got)
		}
	}
}

func TestParseBytes(t *testing.T) {
	for text, want := range map[string]uint64{
		"0": 0, "12": 12, "12B": 12, "65536": 65536, "2GB": 2e9, "2GiB": 2 << 30, "2G": 2 << 30, "1.5k": 1536, "1.5GiB": 3 << 29,
		"64KiB": 65536, "1e3": 1000, "1e+08": 1e8, "1.5e3": 1500, "2e3k": 2000 << 10, "1.1GiB": 1181116006, "3TiB": 3 << 40, "1P": 1 << 50, "18446744073709551615": math.MaxUint64,
	} {
		if got, err := ParseBytes(text); got != want || err != nil {
			t.Errorf("%q: %v, %v; want %v", text, got, err, want)
		}
	}
	for _, text := range []string{
		"", "B", "KiB", "5iB", "5bB", "5KBB", "5K B", "1 GiB", "K5", "-1", "1.5", "1e-3", "1e", "e3", "1e3e3", "1e999", "1E3", "inf", "nan", "0x10", "1/2", "..", "16777216T", "18446744073709551616",
	} {
		if got, err := ParseBytes(text); err == nil {
			t.Errorf("%q is %v", text, got)
		}
	}
}
