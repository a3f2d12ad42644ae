// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/internal/proc"
	"github.com/attune-hpc/attune/internal/procid"
)

// hold is all threads of a process in the hand of this OS thread. It ends with
// the OS thread at the latest.
type hold struct {
	*plan
	threads map[int]*tracee     // that are traced
	arrived map[int]unix.Signal // those that have stopped, and the signal to go on with
	others  map[int]bool        // processes that have memory of their own
	began   time.Time           // when the first was told to stop; zero: not yet
	piece   [8 << 10]byte       // of a stack that is looked at
}

// rewriteOnce tries it in an OS thread that ends afterwards.
func rewriteOnce(process *proc.Handle, c code) (threads int, stopped time.Duration, err error) {
	h := &hold{
		plan: &plan{process: process, pid: process.PID(), late: make(map[int]bool)}, threads: make(map[int]*tracee),
		arrived: make(map[int]unix.Signal), others: make(map[int]bool),
	}
	err = h.rewrite(c)
	h.releaseAll()
	if !h.began.IsZero() {
		stopped = time.Since(h.began)
	}
	return len(h.threads), stopped, err
}

// rewrite does it, and leaves all threads stopped.
func (h *hold) rewrite(c code) (err error) {
	if err := h.allowed(); err != nil {
		return err
	}
	hurry()
	if err := h.takeAll(); err != nil {
		return err
	}
	for _, t := range h.threads {
		if err := h.outside(t, c); err != nil {
			return err
		}
	}
	if err := errors.Join(h.alone(), h.process.Check()); err != nil {
		return err
	}
	return h.write(c)
}

// allowed refuses what must not be stopped, before anything is.
func (h *hold) allowed() error {
	s, err := procid.ReadStatus(h.pid)
	if err != nil {
		return err
	}
	s.ShadowStack, s.Seccomp = false, 0 // nothing is executed in it
	if why := refusal(s); why != "" && !ownTracer(s.Tracer) {
		return fmt.Errorf("%w: %s", ErrUnsuited, why)
	} else if why != "" {
		return errOwnTracer
	}
	return h.alone()
}

// errOwnTracer is why the next try may succeed.
var errOwnTracer = fmt.Errorf("%w: another goroutine of this process is at work there", ErrBusy)

func tracerOf(tid int) int {
	s, _ := procid.ReadStatus(tid)
	return s.Tracer
}

// ownTracer says whether a thread is one of this process.
func ownTracer(tid int) bool { return tid != 0 && exists(os.Getpid(), tid) }

// alone refuses a process whose memory another one has too, as a child does
// between vfork(2) and execve(2). It asks of every process once: who is born
// later is asked for again.
func (h *hold) alone() error {
	pids, err := procid.List()
	if err != nil {
		return err
	}
	const vm = 1 // KCMP_VM
	for _, pid := range pids {
		if pid == h.pid || h.others[pid] {
			continue
		}
		h.others[pid] = true
		order, _, errno := unix.Syscall6(unix.SYS_KCMP, uintptr(h.pid), uintptr(pid), vm, 0, 0, 0)
		switch {
		case errno == unix.ENOSYS:
			return fmt.Errorf("%w: the kernel does not tell whether another process has its memory (CONFIG_KCMP)", ErrUnsuited)
		case errno == 0 && order == 0:
			return fmt.Errorf("%w: process %d runs in its memory", ErrBusy, pid)
		}
	}
	return nil
}

// takeAll stops all threads. Those that are started meanwhile are found by
// looking again: when nothing new is found twice, whoever could start one
// stands still.
func (h *hold) takeAll() error {
	for quiet := 0; quiet < 2; quiet++ {
		tids, err := procid.Threads(h.pid)
		if err != nil {
			return err
		}
		if len(tids) > MaxHeld {
			return fmt.Errorf("%w: it has %d threads, which would all have to be stopped at a time: at most %d are", ErrUnsuited, len(tids), MaxHeld)
		}
		fresh, err := h.take(tids)
		if err != nil {
			return err
		}
		if fresh {
			quiet = -1
		}
	}
	return nil
}

// take stops the threads that are not held yet, and says whether there were
// any.
func (h *hold) take(tids []int) (fresh bool, err error) {
	var seized []*tracee
	for _, tid := range tids {
		if h.threads[tid] != nil {
			continue
		}
		t, err := h.seize(tid)
		switch {
		case h.passing(err):
			continue // it has ended
		case errors.Is(err, ErrDenied) && ownTracer(tracerOf(tid)):
			return false, errOwnTracer
		case err != nil:
			return false, err
		}
		h.threads[tid] = &t
		seized = append(seized, &t)
	}
	if h.began.IsZero() {
		h.began = time.Now()
	}
	for _, t := range seized {
		if t.ptrace(unix.PTRACE_INTERRUPT, 0, 0) != nil {
			delete(h.threads, t.tid)
		}
	}
	for _, t := range seized {
		if err := h.arrive(t); err != nil {
			return false, err
		}
	}
	return len(seized) > 0, nil
}

// most is how long the threads that are held may stand still, and deadline
// when that ends.
func (h *hold) most() time.Duration { return mostHeld + time.Duration(len(h.threads))*mostHeldEach }

func (h *hold) deadline() time.Time { return h.began.Add(h.most()) }

// arrive waits until a thread has stopped, wherever. One that was about to take
// a signal takes it when it is let go.
func (h *hold) arrive(t *tracee) error {
	if h.threads[t.tid] == nil {
		return nil
	}
	t.idle = nil
	s, err := t.wait(h.deadline())
	switch {
	case h.passing(err):
		delete(h.threads, t.tid)
	case errors.Is(err, errLate):
		return fmt.Errorf("%w: thread %d of %d did not stop within %v", ErrBusy, t.tid, len(h.threads), h.most())
	case err != nil:
		return err
	default:
		h.note(t, s)
	}
	return nil
}

// note remembers that a thread has stopped.
func (h *hold) note(t *tracee, s stop) {
	if s.event != 0 {
		s.signal = 0
	}
	h.arrived[t.tid] = s.signal
}

// outside says why a thread would be harmed.
func (h *hold) outside(t *tracee, c code) error {
	var regs unix.PtraceRegs
	if err := unix.PtraceGetRegs(t.tid, &regs); err != nil {
		return fmt.Errorf("%w: thread %d: %w", ErrBusy, t.tid, err)
	}
	if c.within(regs.Rip) || !h.stacksClear(regs.Rsp, c) {
		return fmt.Errorf("%w: thread %d is within the bytes, or was when a signal came", ErrBusy, t.tid)
	}
	if time.Now().After(h.deadline()) {
		return fmt.Errorf("%w: to look at %d threads takes more than %v", ErrBusy, len(h.threads), h.most())
	}
	return nil
}

// In a signal frame the word of the segments follows the flags, the place that
// was interrupted, and its stack.
const (
	segmentsWord = 0x2b<<48 | userCode
	backToRIP    = 2
	backToRSP    = 3
	maxStacks    = 8
)

// stacksClear looks for addresses within the bytes on a thread's stack, and on
// those that signal handlers with a stack of their own have left.
func (h *hold) stacksClear(top uint64, c code) bool {
	stacks := []uint64{top}
	for i := 0; i < len(stacks) && i < maxStacks; i++ {
		end := stacks[i] + maxStack
		for at := stacks[i] &^ 7; at < end; {
			n := h.readSome(at, h.piece[:])
			for j := 0; j+8 <= n; j += 8 {
				word := binary.LittleEndian.Uint64(h.piece[j:])
				switch {
				case c.within(word):
					return false
				case word == segmentsWord && j >= 8*backToRSP:
					stacks = append(stacks, binary.LittleEndian.Uint64(h.piece[j-8*backToRSP:]))
				}
			}
			if n < len(h.piece) {
				break
			}
			at += uint64(n)
		}
	}
	return true
}

// write changes the code, and reads it back.
func (h *hold) write(c code) error {
	now := make([]byte, len(c.from))
	if err := h.process.Read(c.address, now); err != nil {
		return err
	}
	if !bytes.Equal(now, c.from) {
		return fmt.Errorf("%w: the code at %#x is not what it was", ErrUnsuited, c.address)
	}
	return h.process.Write(c.address, c.to)
}

// latePatience bounds the wait for threads that have not stopped when the others
// are let go.
const latePatience = 250 * time.Millisecond

// releaseAll lets all threads go on, and each that stops only now at once. One that
// does not even then is let go by the kernel when this OS thread ends.
func (h *hold) releaseAll() {
	for tid := range h.arrived {
		_ = h.threads[tid].letGo(h.arrived[tid]) // it may have ended
	}
	deadline := time.Now().Add(latePatience)
	for tid, t := range h.threads {
		if _, ok := h.arrived[tid]; ok {
			continue
		}
		if s, err := t.wait(deadline); err == nil {
			h.note(t, s)
			_ = t.letGo(h.arrived[tid])
		}
	}
}
