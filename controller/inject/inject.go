// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"time"

	"github.com/attune-hpc/attune/internal/objfile"
	"github.com/attune-hpc/attune/internal/procid"
)

// Errors of Inject; each comes with its particulars.
var (
	// ErrUnsuited says that DMLib cannot be brought into such a process.
	ErrUnsuited = errors.New("not injectable")
	// ErrDenied says that the kernel does not let this user do it.
	ErrDenied = errors.New("not permitted to control the process")
	// ErrNoSafePoint says that no thread was found at a safe place in time.
	ErrNoSafePoint = errors.New("no thread came to a safe place")
	// ErrTimeout says that the call did not return in time. The thread goes on
	// with it and restores itself.
	ErrTimeout = errors.New("the injected call did not return in time")
	// ErrCall says that the library could not be loaded or did not attach.
	ErrCall = errors.New("injected call")
	// ErrInterrupted says that the process ended or executed another program
	// meanwhile.
	ErrInterrupted = errors.New("process ended or executed another program meanwhile")
)

// Defaults of Options.
const (
	defaultPatience = 2 * time.Second
	defaultTimeout  = 5 * time.Second
)

// Options says what is brought in. Library and Socket are required.
type Options struct {
	// Library is the absolute path of DMLib.
	Library string
	// Socket is the path of the start gate, which must be served meanwhile.
	Socket string
	// Patience bounds the search for a safe place. 0: 2 seconds.
	Patience time.Duration
	// Timeout bounds the call itself. 0: 5 seconds.
	Timeout time.Duration
	// Cache keeps ELF files open; may be nil.
	Cache *objfile.Cache

	// died ends the tracer's thread in the middle of the call, and among leaves
	// threads out; for tests.
	died  func() bool
	among func(tid int) bool
}

// Slot is a GOT slot that leads to one of DMLib's hooks now.
type Slot struct {
	// Address of the slot, Hook where it leads, Old what it held.
	Address, Hook, Old uint64
	// RELRO says that its page is read-only.
	RELRO bool
}

// Result tells what an injection did and cost.
type Result struct {
	// Thread is the thread that made the call.
	Thread int
	// Attempts is how many times a thread was stopped until one was at a safe
	// place.
	Attempts int
	// Stopped is how long that thread did not do its own work.
	Stopped time.Duration
	// Disturbed is how long threads were stopped in vain, altogether.
	Disturbed time.Duration
	// Slots lead to hooks now.
	Slots []Slot
}

// Inject brings DMLib into a process, registers it at the gate and leads the
// process' calls through its hooks. The process is as it was if an error is
// returned, but for a library that was loaded and is inert, and for
// [ErrTimeout]. Errors wrap those of this package or [procid.ErrGone].
func Inject(ctx context.Context, process *procid.Process, o Options) (Result, error) {
	if o.Patience == 0 {
		o.Patience = defaultPatience
	}
	if o.Timeout == 0 {
		o.Timeout = defaultTimeout
	}
	if err := check(process.PID(), o); err != nil {
		return Result{}, err
	}
	plan, err := newPlan(process.PID(), o)
	if err != nil {
		return Result{}, err
	}
	return plan.runAlone(ctx, process)
}

// runAlone runs the plan in an OS thread of its own. It ends with the
// goroutine, and the kernel lets go of whatever it may still trace.
func (p *plan) runAlone(ctx context.Context, process *procid.Process) (result Result, err error) {
	if !process.Alive() {
		return Result{}, fmt.Errorf("pid %d: %w", process.PID(), procid.ErrGone)
	}
	done := make(chan struct{})
	go func() {
		runtime.LockOSThread()
		defer close(done)
		result, err = p.run(ctx, process)
	}()
	<-done
	return result, err
}
