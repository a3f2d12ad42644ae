// SPDX-License-Identifier: Apache-2.0

package meter

import (
	"testing"
	"time"

	"github.com/attune-hpc/attune/internal/beat"
)

func TestDue(t *testing.T) {
	type look struct {
		at, period int
		is         bool
	}
	tests := []struct {
		name  string
		looks []look
	}{
		{"at once, then periodically", []look{{0, 10, true}, {9, 10, false}, {10, 10, true}, {19, 10, false}, {20, 10, true}}},
		{"late ones are not made up for", []look{{0, 10, true}, {42, 10, true}, {49, 10, false}, {50, 10, true}}},
		{"no two close to each other", []look{{0, 10, true}, {47, 10, true}, {50, 10, false}, {60, 10, true}}},
		{"a longer period at once", []look{{0, 10, true}, {5, 100, false}, {10, 100, false}, {99, 100, false}, {100, 100, true}}},
		{"a shorter period from the last time", []look{{0, 100, true}, {5, 10, false}, {9, 10, false}, {10, 10, true}, {20, 10, true}}},
		{"a shorter period that is over", []look{{0, 100, true}, {50, 10, true}, {59, 10, false}, {60, 10, true}}},
		{"none, and again", []look{{0, 10, true}, {10, 0, false}, {11, 10, true}}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			start := beat.Multiple(time.Now(), time.Second)
			ms := func(n int) time.Duration { return time.Duration(n) * time.Millisecond }
			var d due
			for _, l := range test.looks {
				if got := d.is(start.Add(ms(l.at)), ms(l.period)); got != l.is {
					t.Errorf("after %d ms, every %d ms: %v, want %v", l.at, l.period, got, l.is)
				}
			}
		})
	}
}
