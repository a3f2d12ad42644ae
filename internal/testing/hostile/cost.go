// SPDX-License-Identifier: Apache-2.0

package hostile

import (
	"runtime"
	"testing"
	"time"

	"github.com/attune-hpc/attune/internal/testing/patience"
)

// Cost fails the test if a function allocates more than so many bytes altogether (under the
// race detector: four times as many), or does not return.
func Cost(t testing.TB, limit uint64, parse func()) {
	t.Helper()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	done := make(chan struct{})
	go func() {
		defer close(done)
		parse()
	}()
	select {
	case <-done:
	case <-time.After(patience.Limit):
		panic("an attacker's file is still being read") // the goroutine cannot be stopped
	}
	runtime.ReadMemStats(&after)
	if allocated := after.TotalAlloc - before.TotalAlloc; allocated > more*limit {
		t.Errorf("%d MiB allocated, want at most %d", allocated>>20, limit>>20)
	}
}
