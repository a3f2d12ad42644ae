// SPDX-License-Identifier: Apache-2.0

package actuate

import (
	"context"
	"fmt"
	"time"

	"github.com/attune-hpc/attune/internal/objfile"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// resolve finds a symbol among the objects that the process maps now. What
// cannot be found is refused, not failed: nothing was touched.
func resolve(process Process, object, symbol string, kind objfile.SymbolKind) (objfile.Resolved, error) {
	images, err := process.Images()
	if err != nil {
		return objfile.Resolved{}, fmt.Errorf("mappings of process %d: %w", process.PID(), err)
	}
	found, err := objfile.ResolveIn(images, object, symbol, kind)
	if err != nil {
		return objfile.Resolved{}, fmt.Errorf("%w: %w", ErrRefused, err)
	}
	return found, nil
}

// safePointContext ends when the wait for the safe point is over.
func safePointContext(ctx context.Context, at *attunev1.SafePoint) (context.Context, context.CancelFunc) {
	timeout := DefaultSafePointTimeout
	if at.GetTimeoutNanos() > 0 {
		timeout = time.Duration(at.GetTimeoutNanos())
	}
	return context.WithTimeout(ctx, timeout)
}
