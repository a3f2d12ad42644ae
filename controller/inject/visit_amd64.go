// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sys/unix"
)

// Visit is a thread that stands at the entry of a function, as long as the visitor
// of [Meet] wants. Its methods are for the goroutine of the visitor.
type Visit struct {
	a    *ambush
	w    *watched
	regs unix.PtraceRegs
	c    *conversation // nil: no call was made yet
	lost bool          // a call did not come back: the thread is not ours any more
}

// visited has the visitor look at a thread. The conversation is nil if the thread
// goes on and others are waited for.
func (a *ambush) visited(w *watched, stopped time.Time, result *Result) (*conversation, error) {
	v := &Visit{a: a, w: w}
	delete(a.threads, w.tid) // nobody else takes its stops
	a.here.pause(true)
	if err := v.settle(); err != nil {
		return nil, err
	}
	if !a.permitted(w.tracee) {
		a.here.disable()
		return nil, errors.Join(a.noPlace(), a.letGoAt(w))
	}
	done, err := false, a.process.Check()
	if err == nil {
		done, err = a.visit(v)
	}
	if !done && err == nil {
		a.threads[w.tid] = w
		a.here.pause(false)
		return nil, w.resume(0)
	}
	a.here.disable() // a thread that hits it when nobody traces it any more is killed
	result.Thread, result.Stopped = w.tid, time.Since(stopped)
	switch {
	case v.lost:
		return nil, err
	case v.c == nil:
		return nil, errors.Join(err, ignoreEnd(w.letGo(0)))
	}
	return v.c, errors.Join(err, ignoreEnd(v.c.end(true)))
}

// ignoreEnd leaves out that the thread has ended.
func ignoreEnd(err error) error {
	if errors.Is(err, ErrInterrupted) {
		return nil
	}
	return err
}

// settle takes the thread out of the delivery of the breakpoint's signal, which
// would kill it if this process ended now, to a stop from which it would go on.
func (v *Visit) settle() error {
	if err := v.w.ptrace(unix.PTRACE_INTERRUPT, 0, 0); err != nil {
		return err
	}
	if err := v.w.ptrace(unix.PTRACE_CONT, 0, 0); err != nil {
		return err
	}
	s, err := v.w.wait(time.Now().Add(stepPatience))
	switch {
	case err != nil:
		return err
	case s.event != eventStop:
		return fmt.Errorf("%w: a stop by signal %d, event %d, where a trap was due", ErrInterrupted, s.signal, s.event)
	}
	if err := unix.PtraceGetRegs(v.w.tid, &v.regs); err != nil {
		return fmt.Errorf("registers of thread %d: %w", v.w.tid, err)
	}
	return nil
}

// Thread is the thread's id, as this process numbers it.
func (v *Visit) Thread() int { return v.w.tid }

// At says at which of the addresses it stands, by its index. A probe of the
// kernel's has executed the instruction that begins there.
func (v *Visit) At() int {
	return slices.IndexFunc(v.a.at, func(address uint64) bool { return v.regs.Rip-address <= longest })
}

// registerArguments is how many integer parameters are passed in registers.
const registerArguments = 6

// Argument returns what the function is passed for an integer parameter, from 0 on;
// the upper half of a word of 32 bits is undefined. An error for one that lies on
// the stack where only a probe of the kernel's could stop the thread: the first
// instruction may have moved the stack pointer.
func (v *Visit) Argument(n int) (uint64, error) {
	g := &v.regs
	if n < registerArguments {
		return [registerArguments]uint64{g.Rdi, g.Rsi, g.Rdx, g.Rcx, g.R8, g.R9}[n], nil
	}
	if !slices.Contains(v.a.at, g.Rip) {
		return 0, fmt.Errorf("%w: the stack has changed since the function was called", ErrUnsuited)
	}
	word := make([]byte, 8)
	err := v.a.read(g.Rsp+8*uint64(1+n-registerArguments), word)
	return binary.LittleEndian.Uint64(word), err
}

// visitPause is between looks while a thread that stands waits for others: these
// may need the processor.
const visitPause = 500 * time.Microsecond

// Wait returns when it is ready, or with [ErrInterrupted] when the thread has ended.
func (v *Visit) Wait(ready func() bool) error {
	for !ready() {
		if _, ended, err := v.w.poll(); ended || err != nil && !errors.Is(err, unix.EINTR) {
			v.lost = true
			return ErrInterrupted
		}
		v.a.attend()
		time.Sleep(visitPause)
	}
	return nil
}

// open makes room for calls. After them the thread does not come back.
func (v *Visit) open() error {
	if v.c != nil {
		return nil
	}
	v.a.here.disable()
	s, err := v.w.save(v.a.area)
	if err != nil {
		return err
	}
	v.c = &conversation{talk: talk{plan: v.a.plan}, tracee: v.w.tracee, saved: s, besides: v.a.attend}
	return v.note(v.c.open())
}

// note remembers that the thread did not come back.
func (v *Visit) note(err error) error {
	if errors.Is(err, ErrTimeout) || errors.Is(err, ErrInterrupted) || errors.Is(err, errDied) {
		v.lost = true
	}
	return err
}

// Memory is the address of [VisitMemory] bytes in the process, zero at first, that
// are gone when the visit ends.
func (v *Visit) Memory() (uint64, error) {
	if err := v.open(); err != nil {
		return 0, err
	}
	return v.c.base + uint64(len(v.c.region.data)+alignment)&^(alignment-1), nil // where the stack would end
}

// Call has the thread call code, as that of [Execute].
func (v *Visit) Call(code []byte) (uint64, error) {
	if len(code) > MaxCode {
		return 0, fmt.Errorf("%w: %d bytes of code, at most %d", ErrUnsuited, len(code), MaxCode)
	}
	if err := v.open(); err != nil {
		return 0, err
	}
	v.c.code = code
	v.c.region = v.c.newRegion(len(v.c.saved.extra))
	if err := v.c.attempt(); err != nil {
		return 0, v.note(err)
	}
	return v.c.answer.value, nil
}

// Read reads the memory of the process.
func (v *Visit) Read(address uint64, into []byte) error { return v.a.read(address, into) }

// Write writes the memory of the process.
func (v *Visit) Write(address uint64, data []byte) error {
	return v.a.process.Write(address, data)
}
