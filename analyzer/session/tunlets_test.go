// SPDX-License-Identifier: Apache-2.0

package session

import (
	"testing"
	"time"
)

// TestRestAfter: what keeps the loop busy for long has a quarter of it at most.
func TestRestAfter(t *testing.T) {
	for busy, want := range map[time.Duration]time.Duration{
		longReaction - 1:       0,
		100 * time.Millisecond: 300 * time.Millisecond,
	} {
		if got := restAfter(busy); got != want {
			t.Errorf("busy for %v: a rest of %v, want %v", busy, got, want)
		}
	}
}
