// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/attune-hpc/attune/controller/shm"
)

// Of a batch the first that waits for a process that does not come waits long, and the
// others do not.
func TestBatchWaitsOnceInVain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &host{batch: new(batch)}
		for i, one := range []struct {
			err  error // of the point before
			want time.Duration
		}{
			{nil, safePointTimeout}, {errors.New("no such function"), safePointTimeout},
			{fmt.Errorf("a slot: %w", shm.ErrNoSafePoint), vainTimeout}, {nil, vainTimeout},
		} {
			h.learn(one.err)
			began := time.Now()
			ctx, cancel := h.atSafePoint(t.Context())
			<-ctx.Done()
			cancel()
			if got := time.Since(began); got != one.want {
				t.Errorf("wait %d: %v, want %v", i, got, one.want)
			}
		}
	})
}
