// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"context"

	"github.com/attune-hpc/attune/internal/proc"
)

// VisitMemory is how much memory a [Visit] has for its own use, bytes.
const VisitMemory = 64 << 10

// Meet waits until a thread of the process comes to one of some addresses, the
// entries of functions, and has the visitor look at it there. Where the visitor is
// not done with it the thread goes on, and the next one that comes there is looked
// at. At most four addresses are waited for: so many a processor has registers
// for. An error of the visitor ends it, and is returned. Of the options, Patience
// bounds the wait for a thread, from the first on, and Timeout each call.
//
// A thread that is looked at stands still. The visitor is done when it has had the
// thread make calls. If this process is killed meanwhile, the
// thread goes on by itself.
func Meet(ctx context.Context, process *proc.Handle, at []uint64, o ExecuteOptions, visitor func(*Visit) (done bool, err error)) (Result, error) {
	status, err := checkState(process.PID())
	if err != nil {
		return Result{}, err
	}
	o.Anywhere = true
	plan, err := newExecution(process, status, []byte{}, o)
	if err != nil {
		return Result{}, err
	}
	defer plan.close()
	plan.at, plan.visit = at, visitor
	return plan.runAlone(ctx)
}
