// SPDX-License-Identifier: Apache-2.0

package quantity

import "testing"

func TestBytes(t *testing.T) {
	for value, want := range map[float64]string{0: "0 B", 999: "999 B", 1000: "1 KB", 1234: "1.23 KB", 999400: "999 KB", 999600: "1 MB", 3.5e9: "3.5 GB", 7e21: "7e+03 EB"} {
		if got := Bytes(value); got != want {
			t.Errorf("%v: %q, want %q", value, got, want)
		}
	}
}

func TestSeconds(t *testing.T) {
	for value, want := range map[float64]string{0: "0 s", 0.0000123: "0.0123 ms", 0.01234: "0.0123 s", 9.994: "9.99 s", 59.94: "59.9 s", 99.96: "1 min 40 s", 245: "4 min 05 s",
		3599.6: "1 h 00 min", 7380: "2 h 03 min", 273600: "3 d 04 h"} {
		if got := Seconds(value); got != want {
			t.Errorf("%v: %q, want %q", value, got, want)
		}
	}
}

func TestCutUnit(t *testing.T) {
	for text, want := range map[string]int64{"12": 1, "12K": 1 << 10, "1.5m": 1 << 20, "-3G": 1 << 30, "1t": 1 << 40, "K": 1, "": 1, "1+": 1} {
		if digits, scale := CutUnit(text); scale != want || (scale > 1) != (digits != text) {
			t.Errorf("%q: %q times %d, want %d", text, digits, scale, want)
		}
	}
}

func TestNumber(t *testing.T) {
	for value, want := range map[float64]string{0: "0", 3.14159: "3.14", 12345.6: "12346", 0.0012345: "0.00123", -2.5: "-2.5", 100: "100", 999.9: "1000"} {
		if got := Number(value); got != want {
			t.Errorf("%v: %q, want %q", value, got, want)
		}
	}
}

func TestField(t *testing.T) {
	for field, want := range map[string]string{"memory.resident_peak_bytes": "12.3 KB", "disk.bytes_peak": "12.3 KB", "wall_seconds": "3 h 25 min", "processes.total": "12345"} {
		if got := Field(field, 12345); got != want {
			t.Errorf("%s: %q, want %q", field, got, want)
		}
	}
}
