// SPDX-License-Identifier: Apache-2.0

package present

import (
	"math"
	"strings"
	"testing"
)

func TestTableAlignsColumns(t *testing.T) {
	var table Table
	table.Row("program", "rate")
	table.Row("a", "1234×")
	var out strings.Builder
	table.Print(&out)
	if want := "program   rate\na        1234×\n"; out.String() != want {
		t.Errorf("got %q, want %q", out.String(), want)
	}
}

func TestGoalMet(t *testing.T) {
	tests := []struct {
		name string
		goal Goal
		want bool
	}{
		{"at most, below", Goal{Value: 1, Limit: 2}, true},
		{"at most, equal", Goal{Value: 2, Limit: 2}, true},
		{"at most, above", Goal{Value: 3, Limit: 2}, false},
		{"at least, above", Goal{Value: 3, Limit: 2, AtLeast: true}, true},
		{"at least, below", Goal{Value: 1, Limit: 2, AtLeast: true}, false},
		{"at most, not measured", Goal{Value: Figure(math.NaN()), Limit: 2}, false},
		{"at least, not measured", Goal{Value: Figure(math.NaN()), Limit: 2, AtLeast: true}, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := tt.goal.Met(); got != tt.want {
				t.Errorf("got %v, want %v", got, tt.want)
			}
		})
	}
}

func TestNumber(t *testing.T) {
	for value, want := range map[float64]string{0.5: "0.50", 12.34: "12.3", 1234.5: "1234", -0.25: "-0.25"} {
		if got := Number(value); got != want {
			t.Errorf("%v: got %q, want %q", value, got, want)
		}
	}
}
