// SPDX-License-Identifier: Apache-2.0

package cpulist

import (
	"runtime"
	"slices"
	"strings"
	"testing"
)

func TestParse(t *testing.T) {
	for text, want := range map[string]string{
		"0": "0", "3,1-2,2,7": "1-3,7", "0-1, 4": "0-1,4", "16383": "16383",
	} {
		if cpus, err := Parse(text); err != nil || Format(cpus) != want {
			t.Errorf("%q is %v (%v), want %s", text, cpus, err, want)
		}
	}
	for _, text := range []string{"", "x", "3-1", "1,", "-1", "16384", "0-99999"} {
		if cpus, err := Parse(text); err == nil {
			t.Errorf("%q is %v", text, cpus)
		}
	}
}

func TestIntersect(t *testing.T) {
	for _, tt := range []struct{ a, b, want string }{
		{"0-3", "2-5", "2-3"}, {"0,2", "1,3", ""}, {"1", "0-8", "1"},
	} {
		a, errA := Parse(tt.a)
		b, errB := Parse(tt.b)
		if got := Format(Intersect(a, b)); errA != nil || errB != nil || got != tt.want {
			t.Errorf("%s and %s have %q in common, want %q", tt.a, tt.b, got, tt.want)
		}
	}
}

// TestParseRepeated: a text that names all CPUs over and over costs no more than its
// length.
func TestParseRepeated(t *testing.T) {
	text := strings.Repeat("0-16383,", 8000) + "1"
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if cpus, err := Parse(text); err != nil || len(cpus) != Max {
		t.Errorf("%d CPUs, %v", len(cpus), err)
	}
	runtime.ReadMemStats(&after)
	if allocated := after.TotalAlloc - before.TotalAlloc; allocated > 4<<20 {
		t.Errorf("%d bytes allocated", allocated)
	}
}

// FuzzParse: what was parsed is written and parsed the same.
func FuzzParse(f *testing.F) {
	f.Add("0-3,8")
	f.Add("16383,0-16383")
	f.Fuzz(func(t *testing.T, text string) {
		cpus, err := Parse(text)
		if err != nil {
			return
		}
		if again, err := Parse(Format(cpus)); err != nil || !slices.Equal(cpus, again) {
			t.Errorf("%q: %v, then %v (%v)", text, cpus, again, err)
		}
	})
}

// TestOnline: the machine that runs the test uses at least the CPUs that the test may use.
func TestOnline(t *testing.T) {
	cpus, err := Online()
	if err != nil || len(cpus) < runtime.NumCPU() {
		t.Errorf("online are %v (%v), want %d at least", cpus, err, runtime.NumCPU())
	}
}
