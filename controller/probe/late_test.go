// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"slices"
	"testing"
	"time"

	"github.com/attune-hpc/attune/internal/objfile"
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

// A process that is admitted again, with DMLib, has had its points but for the moment in which
// they move. What was counted before is asked for first.
func TestLateByTheMoveOnly(t *testing.T) {
	placer, heard := start(t)
	var left []uint16
	placer.common.options.Leaving = func(_ uint64, points ...uint16) { left = append(left, points...) }
	placer.Add(1, hook("malloc"))
	placer.points.known[1] = wantedPoint{placer.points.known[1].spec, time.Now().Add(-time.Hour)}
	p := mustProcess(t, 10)
	p.started = time.Now().Add(-time.Hour)
	placer.Admit(t.Context(), p, true) // in time
	began := time.Now()
	placer.Admit(t.Context(), p, false)
	if late, most := time.Duration(heard.of(1).GetLateNanos()), time.Since(began); late <= 0 || late > most {
		t.Errorf("late by %v, want %v at most", late, most)
	}
	if !slices.Equal(left, []uint16{1}) {
		t.Errorf("the counts of %v were asked for, want those of point 1", left)
	}
}

// A point that its process would not survive as it is, by what it has loaded since, is late by
// the moment in which something else comes to serve it.
func TestLateByLeavingReturnProbesOnly(t *testing.T) {
	placer, heard := start(t)
	placer.Add(1, hook("malloc"))
	placer.points.known[1] = wantedPoint{placer.points.known[1].spec, time.Now().Add(-time.Hour)}
	p := mustProcess(t, 10)
	p.started = time.Now().Add(-time.Hour)
	placer.Admit(t.Context(), p, true) // in time
	began := time.Now()
	in := placer.tenants.at(10)
	in.mu.Lock()
	in.placed[1].atReturn = true
	p.images, p.unmapped = []objfile.Image{{Path: "/nothing"}}, nil // nobody knows what it throws
	in.mu.Unlock()
	placer.Refresh(10)
	placer.work.group.Wait()
	if late, most := time.Duration(heard.of(1).GetLateNanos()), time.Since(began); late <= 0 || late > most {
		t.Errorf("late by %v, want %v at most", late, most)
	}
}
