// SPDX-License-Identifier: Apache-2.0

package tracer

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/internal/beat"
	"github.com/attune-hpc/attune/internal/procid"
)

// midway says whether a thread that sleeps in the call may have done a part of it: a stop
// would have the call return that part, as a signal handler does, to a program that may
// have no handlers and count on the whole. Nobody could tell afterwards that it was for us.
func (c Call) midway(pid, tid int) bool {
	a := &c.Arguments
	switch c.Number {
	case unix.SYS_RECVFROM:
		return a[3]&unix.MSG_WAITALL != 0
	case unix.SYS_RECVMSG:
		return a[2]&unix.MSG_WAITALL != 0
	case unix.SYS_RECVMMSG: // with MSG_WAITFORONE it waits for the first message only
		return a[2] > 1 && a[3]&unix.MSG_WAITFORONE == 0 || a[3]&unix.MSG_WAITALL != 0
	case unix.SYS_WRITE:
		return a[2] > pipeBuf || a[2] > 1 && !isPipe(pid, tid, uint32(a[0]))
	case unix.SYS_SENDTO:
		return a[2] > 1
	case unix.SYS_IO_URING_ENTER:
		return a[1] != 0 // it has submitted so many requests, and waits for their end
	}
	return traits[c.Number]&partial != 0
}

// pipeBuf is PIPE_BUF: so many bytes are written to a pipe all at once (pipe(7)).
const pipeBuf = 4096

// isPipe says whether a descriptor of a thread is a pipe.
func isPipe(pid, tid int, descriptor uint32) bool {
	st, err := procid.FileOf(procid.Path(pid, fmt.Sprintf("task/%d/fd/%d", tid, descriptor)))
	return err == nil && st.Mode&unix.S_IFMT == unix.S_IFIFO
}

// stays says whether a thread is better let go without a stop, since it is about to take no
// signal of a breakpoint: it sleeps in a call that would be cut short, or it would not stop
// soon, as it sleeps uninterruptibly, like the parent in vfork(2).
func stays(pid, tid int) bool {
	call, ok := CurrentCall(pid, tid)
	s, err := procid.ReadThread(pid, tid)
	return err == nil && (s.State == 'D' || s.State == 'S' && ok && call.midway(pid, tid)) && !s.Pending.Has(unix.SIGTRAP)
}

// allStop says why not all threads of a process may be stopped now.
func allStop(pid int) error {
	tids, err := procid.Threads(pid)
	if why := transferOf(pid, tids...); why != nil {
		return fmt.Errorf("%w: %w", ErrBusy, why)
	}
	return err
}

// transferPause lies between two looks at threads that are in transfers, and quietLooks is
// how many must find none then: one that runs may be between two sleeps of the same call.
const (
	transferPause = 5 * time.Millisecond
	quietLooks    = 2
)

// AwaitTransfers waits, looking from outside only, until no thread of a process waits in
// the middle of a transfer, so that all may be stopped. It says why not, wrapping [ErrBusy],
// when ctx ends.
func AwaitTransfers(ctx context.Context, pid int) (why error) {
	for left := 1; ; {
		switch err := allStop(pid); {
		case errors.Is(err, ErrBusy):
			if unfit := stoppable(pid); errors.Is(unfit, ErrUnsuited) {
				return unfit // a process that stands still ends no transfer
			}
			left, why = quietLooks, err
		case err != nil:
			return err
		default:
			left--
		}
		if left == 0 {
			return nil
		}
		if !beat.Pause(ctx, transferPause) {
			return why
		}
	}
}

// stoppable says why all threads of a process must not be stopped.
func stoppable(pid int) error {
	s, err := procid.ReadStatus(pid)
	if err != nil {
		return err
	}
	s.ShadowStack, s.Seccomp = false, 0 // nothing is executed in it
	why := refusal(s)
	if why != nil && ownTracer(s.Tracer) {
		return errOwnTracer
	}
	return why
}

// transferOf says which of some threads waits in a call that a stop would cut short; nil:
// none does.
func transferOf(pid int, tids ...int) error {
	for _, tid := range tids {
		if call, ok := CurrentCall(pid, tid); ok && call.midway(pid, tid) {
			return fmt.Errorf("thread %d waits in the middle of a transfer (write, send, recv), which a stop would cut short: try again when it goes on", tid)
		}
	}
	return nil
}
