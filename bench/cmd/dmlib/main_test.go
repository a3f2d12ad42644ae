// SPDX-License-Identifier: Apache-2.0

package main

import "testing"

func TestLostRecordsMiss(t *testing.T) {
	for _, tt := range []struct {
		mode  string
		lost  float64
		goals int
		met   bool
	}{
		{"tracing", 0, 2, true},
		{"tracing", 0.5, 2, false},
		{"tracing_timed", 0.5, 2, false},
		{"unread", 0.5, 0, true}, // which is what it is for
	} {
		goals := figure{Operation: "lock+unlock", Mode: tt.mode, Ratio: 1.5, LostShare: tt.lost}.goals()
		met := true
		for _, g := range goals {
			met = met && g.Met()
		}
		if len(goals) != tt.goals || met != tt.met {
			t.Errorf("%s, %v lost: %+v", tt.mode, tt.lost, goals)
		}
	}
}
