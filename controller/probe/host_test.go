// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"testing"
	"testing/synctest"
	"time"
)

// Of a batch the first that waits for a process that does not come waits long, and the
// others do not.
func TestBatchWaitsOnceInVain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &host{batch: new(batch)}
		wait := func() time.Duration {
			began := time.Now()
			ctx, done := h.atSafePoint(t.Context())
			defer done()
			<-ctx.Done()
			return time.Since(began)
		}
		_, inTime := h.atSafePoint(t.Context())
		inTime()
		for i, want := range []time.Duration{safePointTimeout, vainTimeout, vainTimeout} {
			if got := wait(); got != want {
				t.Errorf("wait %d: %v, want %v", i, got, want)
			}
		}
		h.batch = new(batch)
		if got := wait(); got != safePointTimeout {
			t.Errorf("in the next batch %v, want %v", got, safePointTimeout)
		}
	})
}
