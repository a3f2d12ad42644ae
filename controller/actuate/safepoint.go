// SPDX-License-Identifier: Apache-2.0

package actuate

import (
	"context"
	"fmt"
	"time"

	"github.com/attune-hpc/attune/internal/objfile"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// safePointContext ends when the wait for the safe point is over.
func safePointContext(ctx context.Context, at *attunev1.SafePoint) (context.Context, context.CancelFunc) {
	timeout := DefaultSafePointTimeout
	if at.GetTimeoutNanos() > 0 {
		timeout = time.Duration(at.GetTimeoutNanos())
	}
	return context.WithTimeout(ctx, timeout)
}

// callPlace is where a call is to be made.
type callPlace struct {
	families []string
	thread   int               // as the process sees its id; 0: any
	function *objfile.Resolved // at whose entry, or exit; nil: at a hook
	exit     bool
}

// placeOf is the place of a safe point.
func placeOf(process Process, at *attunev1.SafePoint) (p callPlace, err error) {
	p = callPlace{families: at.GetFamilies(), thread: int(at.GetThread())}
	switch at.GetKind() {
	case attunev1.SafePoint_KIND_FUNCTION_ENTRY, attunev1.SafePoint_KIND_FUNCTION_EXIT:
		found, err := lookupChanged(process, at.GetFunction())
		if err != nil {
			return p, fmt.Errorf("safe point: %w", err)
		}
		p.function, p.exit = &found, at.GetKind() == attunev1.SafePoint_KIND_FUNCTION_EXIT
	case attunev1.SafePoint_KIND_AGREED_CALL:
		return p, fmt.Errorf("%w: only MPI control variables are changed at an agreed call", ErrRefused)
	case attunev1.SafePoint_KIND_NOW:
		return p, fmt.Errorf("%w: a call at an arbitrary place can deadlock; use safe point \"next hook\"", ErrRefused)
	}
	return p, nil
}

// words names the place for people.
func (p callPlace) words() string {
	if p.exit {
		return "exit of " + p.function.Symbol.Name
	}
	return "entry of " + p.function.Symbol.Name
}

// DefaultSafePointTimeout is how long an action waits for its safe point.
const DefaultSafePointTimeout = 2 * time.Second
