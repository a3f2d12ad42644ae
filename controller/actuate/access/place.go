// SPDX-License-Identifier: Apache-2.0

package access

import (
	"context"
	"fmt"
	"time"

	"github.com/attune-hpc/attune/internal/objfile"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// SafePointContext ends when the wait for the safe point is over.
func SafePointContext(ctx context.Context, at *attunev1.SafePoint) (context.Context, context.CancelFunc) {
	timeout := DefaultSafePointTimeout
	if at.GetTimeoutNanos() > 0 {
		timeout = time.Duration(at.GetTimeoutNanos())
	}
	return context.WithTimeout(ctx, timeout)
}

// Place is where a call is to be made.
type Place struct {
	Families []string
	Thread   int               // as the process sees its id; 0: any
	Function *objfile.Resolved // at whose entry, or exit; nil: at a hook
	exit     bool
}

// PlaceOf is the place of a safe point.
func PlaceOf(process Process, at *attunev1.SafePoint) (p Place, err error) {
	p = Place{Families: at.GetFamilies(), Thread: int(at.GetThread())}
	switch at.GetKind() {
	case attunev1.SafePoint_KIND_FUNCTION_ENTRY, attunev1.SafePoint_KIND_FUNCTION_EXIT:
		found, err := LookupChanged(process, at.GetFunction())
		if err != nil {
			return p, fmt.Errorf("safe point: %w", err)
		}
		p.Function, p.exit = &found, at.GetKind() == attunev1.SafePoint_KIND_FUNCTION_EXIT
	case attunev1.SafePoint_KIND_AGREED_CALL:
		return p, fmt.Errorf("%w: only MPI control variables are changed at an agreed call", ErrRefused)
	case attunev1.SafePoint_KIND_NOW:
		return p, fmt.Errorf("%w: a call at an arbitrary place can deadlock; use safe point \"next hook\"", ErrRefused)
	}
	return p, nil
}

// words names the place for people.
func (p Place) words() string {
	if p.exit {
		return "exit of " + p.Function.Symbol.Name
	}
	return "entry of " + p.Function.Symbol.Name
}

// DefaultSafePointTimeout is how long an action waits for its safe point.
const DefaultSafePointTimeout = 2 * time.Second
