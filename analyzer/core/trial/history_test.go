// SPDX-License-Identifier: Apache-2.0

package trial

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// samplesOf makes samples of the given lengths in milliseconds, one after the
// other; the value of each is its place.
func samplesOf(lengths ...int) []point {
	var out []point
	var at time.Duration
	for i, ms := range lengths {
		from := at
		at += time.Duration(ms) * time.Millisecond
		out = append(out, point{from, at, float64(i)})
	}
	return out
}

func TestAlike(t *testing.T) {
	tests := []struct {
		name         string
		a, b         []point
		wantA, wantB []float64
	}{
		{"the same length", samplesOf(50, 50, 50), samplesOf(50, 50), []float64{0, 1, 2}, []float64{0, 1}},
		{"ticks are not exact", samplesOf(50, 38, 61, 50), samplesOf(47, 120, 40), []float64{0, 1, 2, 3}, []float64{0, 1, 2}},
		{"joined by time", samplesOf(250, 250), samplesOf(50, 50, 100, 50, 150, 50), []float64{0, 1}, []float64{1.25, 3.75}},
		{"the other way round", samplesOf(100, 100, 100), samplesOf(200), []float64{0.5}, []float64{0}},
		{"shorter than one of the other", samplesOf(50, 50, 50), samplesOf(400, 400), []float64{1}, []float64{0, 1}},
		{"an interval that is not known", samplesOf(0, 50, 50), samplesOf(50), []float64{0, 1, 2}, []float64{0}},
		{"nothing", nil, samplesOf(50), nil, []float64{0}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			a, b := alike(tt.a, tt.b)
			if diff := cmp.Diff([][]float64{tt.wantA, tt.wantB}, [][]float64{a, b}); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestMeanIsOverTime(t *testing.T) {
	if got := mean(samplesOf(50, 150)); got != 0.75 {
		t.Errorf("mean %v, want 0.75", got)
	}
}

// TestScopesInTurn samples scopes in turn: each has its samples, also where there are more than
// there is room for, and one that is not sampled any more makes room.
func TestScopesInTurn(t *testing.T) {
	const rounds = 5
	var s Scopes
	name := func(n int) string { return fmt.Sprint("process/", n) }
	count := func(n int) int { return len(s.Of(name(n)).points) }
	for round := range rounds {
		for n := range maxScopes + 100 {
			at := time.Duration(round) * time.Second
			s.Add(name(n), at, at, 1)
		}
	}
	for n := range maxScopes {
		if count(n) != rounds {
			t.Fatalf("scope %d has %d samples of %d", n, count(n), rounds)
		}
	}
	beyond := maxScopes + 1
	const end = (rounds - 1) * time.Second
	if count(beyond) > 0 || s.LeftOut(name(beyond), end) == "" || s.LeftOut(name(0), end) != "" || s.LeftOut(name(beyond), end+idleScope) != "" {
		t.Errorf("a scope beyond the bound has %d samples, and is told %q, later %q; one within %q",
			count(beyond), s.LeftOut(name(beyond), end), s.LeftOut(name(beyond), end+idleScope), s.LeftOut(name(0), end))
	}
	if len(s.byName) != maxScopes || s.recent.Len() != maxScopes {
		t.Errorf("%d scopes are kept, %d in order, want %d", len(s.byName), s.recent.Len(), maxScopes)
	}

	late := (rounds-1)*time.Second + idleScope
	s.Add(name(beyond), late, late, 1)
	if count(beyond) != 1 || count(0) != 0 || len(s.byName) != maxScopes || s.recent.Len() != maxScopes {
		t.Errorf("a new scope has %d samples, an idle one still %d; %d scopes are kept", count(beyond), count(0), len(s.byName))
	}
}
