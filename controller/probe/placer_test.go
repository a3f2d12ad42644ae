// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"context"
	"testing"

	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// A point that was removed before the goroutine that places it came to the
// process stays out of it.
func TestRemovedPointIsNotPlacedLate(t *testing.T) {
	placer, heard := start(t)
	p := mustProcess(t, 10)
	placer.Admit(context.Background(), p, true)
	tenant, late, next := placer.processes[10], hook("malloc"), hook("read")
	place := func(spec *attunev1.MeasurePoint) {
		tenant.mu.Lock()
		defer tenant.mu.Unlock()
		tenant.place(t.Context(), 1, spec, false)
	}

	placer.points[1] = late // as Add does, before it starts the goroutine
	placer.Remove(1)
	place(late)
	if got := enabled(p); len(got) != 0 || heard.of(1) != nil {
		t.Errorf("enabled after removal: %v, %v", got, heard.of(1))
	}
	placer.points[1] = next // the index is given anew
	place(late)
	place(next)
	placer.Close()
	if symbols := heard.of(1).GetSymbols(); len(symbols) != 1 || symbols[0] != "read" {
		t.Errorf("placed %v, want read", symbols)
	}
}
