// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"context"
	"fmt"

	"github.com/attune-hpc/attune/controller/inject/tracer"
	"github.com/attune-hpc/attune/internal/proc"
)

// Execute makes a thread of the process call code: a function without
// parameters, independent of its address, that returns a word. Its stack has
// 256 KiB, its memory is gone afterwards. Without DMLib, and leaving nothing
// behind; like [Inject] in all else, errors included.
func Execute(ctx context.Context, process *proc.Handle, code []byte, o ExecuteOptions) (value uint64, cost tracer.Cost, err error) {
	if len(code) > MaxCode {
		return 0, cost, fmt.Errorf("%w: %d bytes of code, at most %d", ErrUnsuited, len(code), MaxCode)
	}
	e, err := newExecution(process, code, o, nil)
	if err != nil {
		return 0, cost, err
	}
	if o.At != 0 {
		cost, err = e.runAt(ctx)
	} else {
		cost, err = e.run(ctx)
	}
	return e.value, cost, err
}
