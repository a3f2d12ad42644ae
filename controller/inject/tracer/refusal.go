// SPDX-License-Identifier: Apache-2.0

package tracer

import (
	"errors"
	"fmt"

	"github.com/attune-hpc/attune/internal/proc"
	"github.com/attune-hpc/attune/internal/procid"
)

// Errors of this package; each comes with its particulars.
var (
	// ErrUnsuited says that a process must not or cannot be entered.
	ErrUnsuited = errors.New("not injectable")
	// ErrForNow is an ErrUnsuited of a process that may be suited later.
	ErrForNow = fmt.Errorf("%w for now", ErrUnsuited)
	// ErrDenied says that the kernel does not let this user do it.
	ErrDenied = errors.New("not permitted to control the process")
	// ErrNoSafePoint says that no thread was found at a safe place in time.
	ErrNoSafePoint = errors.New("no thread came to a safe place")
	// ErrTimeout says that what a borrowed thread executes did not end in time. The
	// thread goes on with it and restores itself.
	ErrTimeout = errors.New("the injected call did not return in time")
	// ErrCall says that what a borrowed thread executed went wrong.
	ErrCall = errors.New("injected call")
	// ErrInterrupted says that the thread or the process ended or executed another
	// program meanwhile.
	ErrInterrupted = errors.New("process ended or executed another program meanwhile")
	// ErrBusy is [proc.ErrBusy].
	ErrBusy = proc.ErrBusy
	// ErrDied is what tests make happen (BorrowerOptions.Died).
	ErrDied = errors.New("the tracer has died")
)

var (
	// errLate says that a thread did not stop in time.
	errLate = errors.New("thread did not stop in time")
	// errNotRun says that a borrowed thread, which stands, did not come to a system call in
	// time: it can be given back.
	errNotRun = errors.New("the borrowed thread did not get to run in time")
	// errHeld says that an OS thread must end before another one goes on.
	errHeld = errors.New("a thread of the process is still held")
)

// Check refuses a process whose threads must not or cannot be stopped.
func Check(pid int) (procid.Status, error) {
	s, err := procid.ReadStatus(pid)
	if err != nil {
		return s, err
	}
	if why := refusal(s); why != nil {
		return s, why
	}
	if same, err := procid.SharesMemory(pid, s.Parent); same && err == nil && s.Parent > 0 {
		return s, fmt.Errorf("%w: it runs in the memory of its parent, process %d, until it executes a program (vfork)", ErrForNow, s.Parent)
	}
	return s, nil
}

// refusal says why a process in this state is left alone; nil if it need not be.
func refusal(s procid.Status) error {
	switch {
	case s.Ended():
		return fmt.Errorf("%w: it has ended", ErrUnsuited)
	case s.Tracer != 0:
		return fmt.Errorf("%w: %s", ErrForNow, traced(s.Tracer))
	case s.State == 'T' || s.State == 't':
		return fmt.Errorf("%w: it is stopped: continue it first (kill -CONT), it would have to run", ErrForNow)
	case s.ShadowStack:
		return fmt.Errorf("%w: it has a shadow stack, on which a thread cannot be put back if this command is killed", ErrUnsuited)
	case s.Seccomp == 1:
		return fmt.Errorf("%w: it is in seccomp's strict mode and would be killed by the first system call of ours", ErrUnsuited)
	}
	return nil
}

// traced tells of a tracer, of which the kernel names a thread.
func traced(tracer int) string {
	if s, err := procid.ReadStatus(tracer); err == nil {
		tracer = s.Process
	}
	return fmt.Sprintf("process %d traces it: end that debugger or tracer first", tracer)
}

// Lost says whether a borrowed thread has not come back, or its tracer is gone: it is
// not to be touched any more.
func Lost(err error) bool {
	return errors.Is(err, ErrTimeout) || errors.Is(err, ErrInterrupted) || errors.Is(err, ErrDied)
}

// deniedError explains a ptrace or an access to memory that was refused: ErrInterrupted if that
// was because the thread is ending, ErrForNow if somebody else traces it.
func deniedError(tid int, err error) error {
	s, e := procid.ReadStatus(tid)
	switch {
	case e != nil || s.Ended():
		return ErrInterrupted
	case s.Tracer != 0:
		return fmt.Errorf("%w: %s", ErrForNow, traced(s.Tracer))
	}
	return fmt.Errorf("%w: thread %d: %w: %s", ErrDenied, tid, err, procid.Barrier(tid))
}
