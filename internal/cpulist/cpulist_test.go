// SPDX-License-Identifier: Apache-2.0

package cpulist

import "testing"

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
