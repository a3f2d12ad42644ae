// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/internal/procid"
)

// A breakpoint is a perf event on a thread's debug registers (Linux 5.13) that
// has the kernel send SIGTRAP to that thread before the instruction: it is a
// ptrace stop of that thread alone, and no byte of code is changed. Unlike what
// PTRACE_POKEUSER writes there, the event goes when its descriptor does, also
// when the tracer is killed, and takes no register that somebody else has.
const (
	trapPerf     = 6 // si_code TRAP_PERF
	bitNoKernel  = 1 << 5
	bitNoHV      = 1 << 6
	bitNoExec    = 1 << 36 // remove_on_exec
	bitSigtrap   = 1 << 37
	breakpointX  = 4 // HW_BREAKPOINT_X
	cookie       = 0x656e757474 << 16
	siCode       = 8
	siPerfData   = 24
	siginfoBytes = 128
	trapBit      = 1 << (uint(unix.SIGTRAP) - 1)
)

// coverEvery is how often new threads are looked for.
const coverEvery = 5 * time.Millisecond

// watched is a thread that is waited for.
type watched struct {
	tracee
	event int // descriptor of its breakpoint; -1: none
}

// ambush waits until a thread comes to an address.
type ambush struct {
	*plan
	process *procid.Process
	threads map[int]*watched
	depth   uint64 // the stack pointer that is expected there; 0: any
	at      uint64
}

// await makes the call where a thread comes to the plan's address.
func (p *plan) await(ctx context.Context, process *procid.Process, result *Result) (c *conversation, err error) {
	if err := p.trapIsFree(); err != nil {
		return nil, err
	}
	a := &ambush{plan: p, process: process, threads: make(map[int]*watched), at: p.at}
	defer a.end()
	until := time.Now().Add(p.options.Patience)
	var next time.Time
	for {
		if now := time.Now(); now.After(next) && a.depth == 0 {
			if err := a.cover(); err != nil {
				return nil, err
			}
			next = now.Add(coverEvery)
		}
		hit, err := a.look()
		switch {
		case err != nil:
			return nil, err
		case hit != nil:
			if c, err = a.arrived(hit, result); c != nil || err != nil {
				return c, err
			}
		}
		if ctx.Err() != nil {
			return nil, fmt.Errorf("%w: none of %d threads came to the function: %w", ErrNoSafePoint, len(a.threads), context.Cause(ctx))
		}
		if !process.Alive() {
			return nil, fmt.Errorf("pid %d: %w", p.pid, procid.GoneError(unix.ESRCH))
		}
		if time.Now().After(until) {
			return nil, fmt.Errorf("%w: none of %d threads came to the function in %v", ErrNoSafePoint, len(a.threads), p.options.Patience)
		}
	}
}

// trapIsFree says why the process could not be sent SIGTRAP without a trace: the
// kernel would end that it is ignored.
func (p *plan) trapIsFree() error {
	set, err := signalSet(p.pid, p.pid, "SigIgn")
	if err == nil && set&trapBit != 0 {
		err = fmt.Errorf("%w: it ignores SIGTRAP, by which a breakpoint is reported", ErrUnsuited)
	}
	return err
}

// cover takes hold of threads that are not watched yet.
func (a *ambush) cover() error {
	tids := []int{a.thread}
	if a.thread == 0 {
		entries, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", a.pid))
		if err != nil {
			return fmt.Errorf("threads of %d: %w", a.pid, procid.GoneError(err))
		}
		tids = tids[:0]
		for _, entry := range entries {
			if tid, err := strconv.Atoi(entry.Name()); err == nil {
				tids = append(tids, tid)
			}
		}
	}
	for _, tid := range tids {
		if a.threads[tid] != nil || a.blocked(tid) {
			continue
		}
		switch err := a.add(tid); {
		case err == nil, a.passing(err, a.process):
		default:
			return err
		}
	}
	if len(a.threads) == 0 && a.process.Alive() {
		return fmt.Errorf("%w: its threads block SIGTRAP, by which a breakpoint is reported", ErrUnsuited)
	}
	return nil
}

// blocked says whether a thread blocks the signal, as those do that wait for
// signals: it would get it some time later.
func (a *ambush) blocked(tid int) bool {
	set, err := signalSet(a.pid, tid, "SigBlk")
	return err == nil && set&trapBit != 0
}

// add watches one thread. It is traced first: who hits a breakpoint without a
// tracer is killed. Threads that have ended are let go before: execve(2) would
// wait for that, and seizing for execve.
func (a *ambush) add(tid int) error {
	a.attend()
	t, err := a.seize(tid, a.process)
	if err != nil {
		return err
	}
	t.idle = a.attend
	w := &watched{tracee: t, event: -1}
	a.threads[tid] = w
	w.event, err = openBreakpoint(tid, a.at)
	return err
}

func openBreakpoint(tid int, address uint64) (int, error) {
	attr := unix.PerfEventAttr{
		Type: unix.PERF_TYPE_BREAKPOINT, Size: uint32(unsafe.Sizeof(unix.PerfEventAttr{})),
		Sample: 1, Bits: bitNoKernel | bitNoHV | bitNoExec | bitSigtrap,
		Bp_type: breakpointX, Ext1: address, Ext2: uint64(unsafe.Sizeof(uintptr(0))), Sig_data: cookie,
	}
	fd, err := unix.PerfEventOpen(&attr, tid, -1, -1, unix.PERF_FLAG_FD_CLOEXEC)
	switch {
	case err == nil:
		return fd, nil
	case errors.Is(err, unix.ESRCH):
		return -1, ErrInterrupted
	case errors.Is(err, unix.ENOSPC):
		err = fmt.Errorf("%w: all debug registers of thread %d are in use, by itself or a debugger", ErrUnsuited, tid)
	case errors.Is(err, unix.EACCES), errors.Is(err, unix.EPERM):
		err = fmt.Errorf("%w: breakpoints: sysctl kernel.perf_event_paranoid is above 2", ErrDenied)
	case errors.Is(err, unix.EMFILE):
		err = fmt.Errorf("%w: a breakpoint takes a descriptor for each thread: raise the limit of open files", ErrUnsuited)
	default:
		err = fmt.Errorf("%w: breakpoint in thread %d: %w", ErrUnsuited, tid, err)
	}
	return -1, err
}

// arrived is what is done when a thread has come to the address: the call, or
// at the entry of a function whose exit is meant, a breakpoint there.
func (a *ambush) arrived(w *watched, result *Result) (*conversation, error) {
	stopped := w.running
	result.Attempts++
	var regs unix.PtraceRegs
	if err := unix.PtraceGetRegs(w.tid, &regs); err != nil || regs.Rip != a.at || a.depth != 0 && regs.Rsp != a.depth {
		return nil, w.goOn(0) // a recursive call's return, or another program
	}
	a.closeAll()
	if a.exit && a.depth == 0 {
		if err := a.followToExit(w, &regs); err != nil {
			return nil, errors.Join(err, a.letGoAt(w))
		}
		return nil, nil
	}
	if !a.permitted(w.tracee) {
		return nil, errors.Join(a.noPlace(result.Attempts), a.letGoAt(w))
	}
	delete(a.threads, w.tid)
	result.Thread = w.tid
	c, err := a.call(w.tracee)
	result.Stopped = time.Since(stopped)
	return c, err
}

// letGoAt detaches from a thread that has been stopped by its breakpoint, and
// takes the signal off: left traced, it would get it when the tracer ends.
func (a *ambush) letGoAt(w *watched) error {
	delete(a.threads, w.tid)
	w.closeEvent()
	return w.letGo()
}

// followToExit lets the thread run until the function returns.
func (a *ambush) followToExit(w *watched, regs *unix.PtraceRegs) (err error) {
	word := make([]byte, 8)
	if err := a.read(regs.Rsp, word); err != nil {
		return err
	}
	a.at, a.depth = binary.LittleEndian.Uint64(word), regs.Rsp+8
	if w.event, err = openBreakpoint(w.tid, a.at); err != nil {
		return err
	}
	return w.goOn(0)
}

// goOn continues a stopped thread with a signal.
func (w *watched) goOn(signal unix.Signal) error {
	err := w.ptrace(unix.PTRACE_CONT, 0, uintptr(signal))
	if errors.Is(err, ErrInterrupted) {
		return nil
	}
	return err
}

// look serves one stop of any thread; the thread, if it is at a breakpoint.
func (a *ambush) look() (*watched, error) {
	tid, status, err := nextStatus(unix.P_ALL, 0)
	if err != nil || tid == 0 {
		now := time.Now()
		for _, w := range a.threads {
			w.running = now
		}
		rest(mostPause)
		return nil, nil //nolint:nilerr // nobody is left, or it was interrupted
	}
	w := a.threads[tid]
	switch {
	case w == nil:
		a.stray(tid, status)
		return nil, nil
	case !status.Stopped():
		w.closeEvent()
		delete(a.threads, tid)
		return nil, nil
	case int(status)>>16 == 0 && w.ours(status.StopSignal()):
		return w, nil
	}
	return nil, w.pass(status)
}

// stray lets a thread go that was told to stop and did so too late.
func (a *ambush) stray(tid int, status unix.WaitStatus) {
	delete(a.late, tid)
	var signal unix.Signal
	if int(status)>>16 == 0 && status.Stopped() {
		signal = status.StopSignal()
	}
	_ = tracee{tid: tid}.ptrace(unix.PTRACE_DETACH, 0, uintptr(signal)) // it may have ended
}

// pass lets a thread do what it would without us.
func (w *watched) pass(status unix.WaitStatus) error {
	const ptraceListen = 0x4208
	switch signal := status.StopSignal(); {
	case int(status)>>16 == 0:
		return w.goOn(signal)
	case signal != unix.SIGTRAP: // it is being stopped, and stays so
		_ = w.ptrace(ptraceListen, 0, 0) // it may have ended
		return nil
	}
	return w.goOn(0)
}

// ours says whether a signal is that of our breakpoint.
func (w *watched) ours(signal unix.Signal) bool {
	var info [siginfoBytes]byte
	if signal != unix.SIGTRAP || w.point(unix.PTRACE_GETSIGINFO, 0, unsafe.Pointer(&info)) != nil {
		return false
	}
	return binary.LittleEndian.Uint32(info[siCode:]) == trapPerf && binary.LittleEndian.Uint64(info[siPerfData:]) == cookie
}

// attend serves the other threads while one makes the call.
func (a *ambush) attend() {
	for tid, w := range a.threads {
		got, status, err := nextStatus(unix.P_PID, tid)
		if err != nil || got != tid {
			continue
		}
		switch {
		case !status.Stopped():
			delete(a.threads, tid)
		case int(status)>>16 == 0 && w.ours(status.StopSignal()):
			_ = w.goOn(0) // it came there as well
		default:
			_ = w.pass(status)
		}
	}
	a.sweep()
}

func (w *watched) closeEvent() {
	if w.event >= 0 {
		unix.Close(w.event)
	}
	w.event = -1
}

func (a *ambush) closeAll() {
	for _, w := range a.threads {
		w.closeEvent()
	}
}

// end lets all threads go. The breakpoints go first; a thread that has hit one
// already is let go when it has taken its signal.
func (a *ambush) end() {
	a.closeAll()
	for _, w := range a.threads {
		_ = w.ptrace(unix.PTRACE_INTERRUPT, 0, 0) // it may have ended
	}
	deadline := time.Now().Add(stepPatience)
	for _, w := range a.threads {
		if err := w.leave(a.pid, deadline); errors.Is(err, errLate) {
			a.late[w.tid] = true
		}
	}
	a.sweep()
}

// leave detaches from a thread that was told to stop.
func (w *watched) leave(pid int, deadline time.Time) error {
	w.idle = nil
	for {
		s, err := w.wait(deadline)
		if err != nil {
			return err
		}
		if s.event == 0 {
			if w.ours(s.signal) {
				s.signal = 0
			}
			return w.ptrace(unix.PTRACE_DETACH, 0, uintptr(s.signal))
		}
		pending, err := signalSet(pid, w.tid, "SigPnd")
		if err != nil || pending&trapBit == 0 {
			return w.letGo()
		}
		if err := w.goOn(0); err != nil {
			return err
		}
	}
}

// signalSet is a line of a thread's status.
func signalSet(pid, tid int, name string) (uint64, error) {
	content, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/status", pid, tid))
	if err != nil {
		return 0, procid.GoneError(err)
	}
	for line := range strings.Lines(string(content)) {
		if set, ok := strings.CutPrefix(line, name+":"); ok {
			return strconv.ParseUint(strings.TrimSpace(set), 16, 64)
		}
	}
	return 0, fmt.Errorf("status of thread %d without %s", tid, name)
}
