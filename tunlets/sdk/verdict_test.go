// SPDX-License-Identifier: Apache-2.0

package sdk

import "testing"

func TestByMeasurement(t *testing.T) {
	tests := []struct {
		name          string
		before, after float64
		suggested     Verdict
		want          Verdict
	}{
		{"a gain", 10, 20, Keep, Keep},
		{"no gain", 10, 10, Undo, Undo},
		{"the program pauses", 10, 0, Undo, Wait},
		{"no progress before either", 0, 0, Undo, Undo},
		{"the Analyzer has no opinion", 0, 5, 0, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, reason := Evaluation{
				Before: Estimate{Median: tt.before}, After: Estimate{Median: tt.after}, Suggested: tt.suggested,
			}.ByMeasurement("calls")
			if got != tt.want || (reason != "") != (got == Wait) {
				t.Errorf("verdict %v (%q), want %v", got, reason, tt.want)
			}
		})
	}
}
