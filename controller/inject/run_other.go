// SPDX-License-Identifier: Apache-2.0

//go:build !amd64

package inject

import (
	"context"
	"fmt"
	"runtime"
	"time"

	"github.com/attune-hpc/attune/internal/procid"
)

// blocking is empty: no register layout, no restartable calls.
var blocking map[int64]bool

// breakpoint is of no kind.
type breakpoint interface{ close() error }

// Calling returns nothing: there is no thread that could execute it.
func Calling(uint64) []byte { return nil }
func (p *plan) run(context.Context, *procid.Process, *Result) error {
	return fmt.Errorf("%w: not built for %s yet", ErrUnsuited, runtime.GOARCH)
}

func rewriteOnce(*procid.Process, code) (int, time.Duration, error) {
	return 0, 0, fmt.Errorf("%w: not built for %s yet", ErrUnsuited, runtime.GOARCH)
}
