// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/controller/inject/breakpoint"
	"github.com/attune-hpc/attune/controller/inject/tracer"
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
func Meet(ctx context.Context, process *proc.Handle, at []uint64, o ExecuteOptions, visitor func(*Visit) (done bool, err error)) (tracer.Cost, error) {
	o.Anywhere = true
	e, err := newExecution(process, []byte{}, o, nil)
	if err != nil {
		return tracer.Cost{}, err
	}
	m := &meeting{ambush: ambush{execution: e}, at: at, visitor: visitor}
	return m.await(ctx, at, m.arrived)
}

// meeting is what a visitor and threads that come to some addresses have together.
type meeting struct {
	ambush
	at      []uint64
	visitor func(*Visit) (done bool, err error)
}

// arrived has the visitor look at a thread. Others are waited for if it is not done.
func (m *meeting) arrived(t *tracer.Thread) (done bool, err error) {
	m.cost.Attempts++
	if !m.here.Reached(t.ID, 0) {
		return false, m.watch.GoOn(t) // in another program
	}
	m.here.Pause(true)
	since, err := m.watch.Hold(t)
	if err != nil {
		return false, err
	}
	v := &Visit{m: m, t: t}
	if v.regs, err = t.Registers(); err != nil {
		return false, err
	}
	if err = m.watch.Admits(t); err == nil {
		done, err = m.visitor(v)
	}
	if !done && err == nil {
		m.here.Pause(false)
		return false, m.watch.Return(t)
	}
	m.here.Disable() // a thread that hits it when nobody traces it any more is killed
	m.cost.Thread, m.cost.Stopped = t.ID, time.Since(since)
	return true, errors.Join(err, v.end())
}

// Visit is a thread that stands at the entry of a function, as long as the visitor
// of [Meet] wants. Its methods are for the goroutine of the visitor.
type Visit struct {
	m    *meeting
	t    *tracer.Thread
	regs unix.PtraceRegs
	c    *call // nil: no call was made yet
	lost bool  // a call did not come back: the thread is not ours any more
}

// end lets the thread go, for good. It may have ended.
func (v *Visit) end() error {
	switch {
	case v.lost:
		return nil
	case v.c == nil:
		return tracer.IgnoreEnd(v.t.LetGo())
	}
	return tracer.IgnoreEnd(v.c.giveBack(true))
}

// At says at which of the addresses it stands, by its index. A probe of the
// kernel's has executed the instruction that begins there.
func (v *Visit) At() int {
	return slices.IndexFunc(v.m.at, func(address uint64) bool { return v.regs.Rip-address <= breakpoint.Longest })
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
	if !slices.Contains(v.m.at, g.Rip) {
		return 0, fmt.Errorf("%w: the stack has changed since the function was called", ErrUnsuited)
	}
	word := make([]byte, 8)
	err := v.Read(g.Rsp+8*uint64(1+n-registerArguments), word)
	return binary.LittleEndian.Uint64(word), err
}

// visitPause is between looks while a thread that stands waits for others: these
// may need the processor.
const visitPause = 500 * time.Microsecond

// Wait returns when it is ready, or with [ErrInterrupted] when the thread has ended.
func (v *Visit) Wait(ready func() bool) error {
	for !ready() {
		if err := v.m.watch.Stands(v.t); err != nil {
			v.lost = true
			return err
		}
		v.m.watch.Attend()
		time.Sleep(visitPause)
	}
	return nil
}

// open makes room for calls. After them the thread does not come back.
func (v *Visit) open() (err error) {
	if v.c != nil {
		return nil
	}
	v.m.here.Disable()
	v.c, err = v.m.caller.open(v.t, &v.m.job)
	return v.note(err)
}

// note remembers that the thread did not come back.
func (v *Visit) note(err error) error {
	v.lost = v.lost || tracer.Lost(err)
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
	v.m.job.code = code
	v.c.region = newRegion(&v.m.job, v.c.VectorBytes())
	if err := v.c.make(nil); err != nil {
		return 0, v.note(err)
	}
	return v.c.answer.value, nil
}

// Read reads the memory of the process.
func (v *Visit) Read(address uint64, into []byte) error {
	return v.m.caller.process.Read(address, into)
}

// Write writes the memory of the process.
func (v *Visit) Write(address uint64, data []byte) error {
	return v.m.caller.process.Write(address, data)
}
