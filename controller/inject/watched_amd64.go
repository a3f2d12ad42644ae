// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"errors"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/internal/procid"
)

// watched is a thread that is waited for.
type watched struct{ tracee }

// resume continues a stopped thread with a signal. It may have ended.
func (w *watched) resume(signal unix.Signal) error {
	return ignoreEnd(w.goOn(unix.PTRACE_CONT, signal))
}

// pass lets a thread do what it would without us.
func (w *watched) pass(status unix.WaitStatus) error {
	const ptraceListen = 0x4208
	switch signal := status.StopSignal(); {
	case int(status)>>16 == 0:
		return w.resume(signal)
	case signal != unix.SIGTRAP: // it is being stopped, and stays so
		_ = w.ptrace(ptraceListen, 0, 0) // it may have ended
		return nil
	}
	return w.resume(0)
}

// leave detaches from a thread that was told to stop. One that could run and has
// no processor is waited for up to the second deadline.
func (p *plan) leave(w *watched, deadline, latest time.Time) error {
	w.idle = nil
	for {
		s, err := w.wait(deadline)
		if errors.Is(err, errLate) && time.Now().Before(latest) && runnable(p.pid, w.tid) {
			deadline = time.Now().Add(stopPatience)
			continue
		}
		if err != nil {
			return err
		}
		if gone, err := p.release(w.tracee, s); gone || err != nil {
			return err
		}
	}
}

// release detaches from a thread that has stopped, unless our breakpoint's signal
// is still to come, which would kill it untraced: then it goes on to that.
func (p *plan) release(t tracee, s stop) (gone bool, err error) {
	if s.event == 0 {
		if p.ours(t, s.signal) {
			s.signal = 0
		}
		return true, t.letGo(s.signal)
	}
	if !trapPending(p.pid, t.tid) {
		return true, t.letGo(0)
	}
	err = t.ptrace(unix.PTRACE_CONT, 0, 0)
	return errors.Is(err, ErrInterrupted), err
}

// ours says whether a signal that a thread is stopped by is that of a breakpoint of
// ours.
func (p *plan) ours(t tracee, signal unix.Signal) bool {
	return slices.ContainsFunc(p.breakpoints, func(b breakpoint) bool { return b.stopped(t, signal) })
}

// trapPending says whether a thread is about to get the signal of a breakpoint.
func trapPending(pid, tid int) bool {
	s, err := procid.ReadThread(pid, tid)
	return err == nil && s.Pending.Has(unix.SIGTRAP)
}
