// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"testing"
	"testing/synctest"
	"time"
)

// TestTimeOfAWatchBeginsWithItsFirstPoint: what it takes to place one is not of the time, but it is
// not waited for without end.
func TestTimeOfAWatchBeginsWithItsFirstPoint(t *testing.T) {
	for name, row := range map[string]struct {
		placed time.Duration // 0: never
		ends   time.Duration
	}{
		"at once": {time.Millisecond, 2*time.Second + time.Millisecond},
		"late":    {20 * time.Second, 22 * time.Second},
		"never":   {0, patience},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began, ended := time.Now(), make(chan time.Time, 1)
				l := newLimit(2*time.Second, func() { ended <- time.Now() })
				if row.placed > 0 {
					time.Sleep(row.placed)
					l.begin()
					time.Sleep(time.Second)
					l.begin() // another point
				}
				if got := (<-ended).Sub(began); got != row.ends || !l.past() {
					t.Errorf("ends after %v, want %v", got, row.ends)
				}
				l.stop()
			})
		})
	}
	var none *limit // without --for
	none.begin()
	none.stop()
	if none.past() {
		t.Error("no time is up")
	}
}
