// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/controller/shm"
	"github.com/attune-hpc/attune/internal/objfile"
	"github.com/attune-hpc/attune/internal/proc"
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

// controllerPatience is how long what runs in the process waits for us to fill
// its files, and to read its answer.
const controllerPatience = 2 * time.Second

// Options says what is brought in. Library is required.
type Options struct {
	// Library is the absolute path of DMLib, as this process sees it. A process
	// that sees another file there, or belongs to another user, is given the
	// bytes.
	Library string
	// Socket is the path of the start gate, for children that the process forks
	// later; empty: they stay without DMLib. So do those that cannot reach it.
	Socket string
	// Geometry of the memory shared with the process; zero: the default. It is
	// made smaller where the process has no room for it.
	Geometry shm.Geometry
	// patience bounds the search for a safe place. 0: 2 seconds.
	patience time.Duration
	// timeout bounds the call itself. 0: 5 seconds.
	timeout time.Duration
	// Cache keeps ELF files open; may be nil.
	Cache *objfile.Cache

	// died ends the tracer's thread somewhere in the middle of the call, and among
	// leaves threads out; for tests.
	died  func(where string) bool
	among func(tid int) bool
}

func (o Options) withDefaults() Options {
	if o.patience == 0 {
		o.patience = defaultPatience
	}
	if o.timeout == 0 {
		o.timeout = defaultTimeout
	}
	return o
}

// Slot is a GOT slot that leads to one of DMLib's hooks now.
type Slot struct {
	// Address of the slot, Hook where it leads, Old what it held.
	Address, Hook, Old uint64
	// RELRO says that its page is read-only.
	RELRO bool

	real   uint64         // the function behind the hook; 0: not known
	origin objfile.Origin // in an object that is loaded at bias
	bias   uint64
}

// Result tells what an injection did and cost.
type Result struct {
	// Thread is the thread of the program that was borrowed.
	Thread int
	// Helper is the thread that was started to load DMLib, and has ended; 0:
	// Thread did that itself.
	Helper int
	// Loaded says that DMLib was not in the process before.
	Loaded bool
	// Attempts is how many times a thread was stopped until one was at a safe
	// place.
	Attempts int
	// Stopped is how long Thread did not do its own work, from the last look
	// that found it running. No other thread is ever stopped, but for a look
	// (Disturbed).
	Stopped time.Duration
	// Disturbed is how long threads were stopped in vain, altogether.
	Disturbed time.Duration
	// Slots lead to hooks now.
	Slots []Slot
	// Memory is shared with DMLib, which is ready. It belongs to the caller; to
	// close it lets go of the process.
	Memory *shm.Memory
}

// Inject brings DMLib into a process and leads the process' calls through its
// hooks. Where the library is there already, because another controller left
// it or it was preloaded, it is told to serve this one. The process is as it
// was if an error is returned, but for a library that was loaded and is inert,
// and for [ErrTimeout]. Errors wrap those of this package or [procid.ErrGone].
//
// Of several controllers that enter a process at a time one succeeds, and the
// others get [ErrHeld].
func Inject(ctx context.Context, process *proc.Handle, o Options) (Result, error) {
	o = o.withDefaults()
	status, err := check(process.PID())
	if err != nil {
		return Result{}, err
	}
	release, err := claim(process.PID())
	if err != nil {
		return Result{}, err
	}
	defer release()
	for {
		result, err := injectOnce(ctx, process, status, o)
		smaller, ok := o.Geometry.Smaller()
		if !errors.Is(err, unix.ENOMEM) || !ok {
			return result, err
		}
		o.Geometry = smaller
	}
}

func injectOnce(ctx context.Context, process *proc.Handle, s procid.Status, o Options) (Result, error) {
	plan, err := newPlan(process, s, o)
	if err != nil && (ending(process) || errors.Is(err, unix.ESRCH)) {
		return Result{}, fmt.Errorf("pid %d: %w", process.PID(), procid.ErrGone)
	}
	if err != nil {
		return Result{}, err
	}
	defer plan.close()
	return plan.runAlone(ctx)
}

// runAlone runs the plan in an OS thread of its own. It ends with the
// goroutine, and the kernel lets go of whatever it may still trace.
func (p *plan) runAlone(ctx context.Context) (result Result, err error) {
	p.until = time.Now().Add(p.options.patience)
	for err = errHeld; errors.Is(err, errHeld); {
		clear(p.late) // the kernel has let them go with the OS thread before
		onOwnThread(func() { err = p.run(ctx, &result) })
	}
	if err != nil && !errors.Is(err, procid.ErrGone) && (ending(p.process) || errors.Is(err, proc.ErrImageGone)) {
		err = fmt.Errorf("%w: %w", ErrInterrupted, err)
	}
	return result, err
}

// ending says whether a process has ended, or is about to: its memory goes first,
// and with it all that was to be read and written there.
func ending(process *proc.Handle) bool {
	if !process.Process.Alive() {
		return true
	}
	stat, err := procid.ReadStat(process.PID())
	return err == nil && procid.Dying(process.PID(), stat)
}
