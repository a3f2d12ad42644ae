// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"testing"
	"time"
)

// How long a process ran without a point that was asked for is told.
func TestLate(t *testing.T) {
	const hour = time.Hour
	for _, tt := range []struct {
		name           string
		started, asked time.Duration // ago
		held           bool
		least, most    time.Duration
	}{
		{"asked for before the process came", 2 * hour, 3 * hour, false, 2 * hour, 3 * hour},
		{"asked for later", 3 * hour, 2 * hour, false, 2 * hour, 3 * hour},
		{"in place before main", 2 * hour, 3 * hour, true, 0, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			placer, heard := start(t)
			placer.Add(1, hook("malloc"))
			placer.points.known[1] = wantedPoint{placer.points.known[1].spec, time.Now().Add(-tt.asked)}
			p := mustProcess(t, 10)
			p.started = time.Now().Add(-tt.started)
			placer.Admit(t.Context(), p, tt.held)
			if late := time.Duration(heard.of(1).GetLateNanos()); late < tt.least || late > tt.most {
				t.Errorf("late by %v, want %v to %v", late, tt.least, tt.most)
			}
		})
	}
}
