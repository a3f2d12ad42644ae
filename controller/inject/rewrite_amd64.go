// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/controller/inject/tracer"
	"github.com/attune-hpc/attune/internal/proc"
)

const (
	// holdTries is how often that is tried, and holdPause lies between two.
	holdTries = 8
	holdPause = 5 * time.Millisecond
)

// Rewritten tells what changing code took.
type Rewritten struct {
	// Threads that were held.
	Threads int
	// Stopped is how long, from when the first was told to stop until the last
	// was let go, and Tries how often, the one that succeeded included.
	Stopped time.Duration
	Tries   int
}

// Rewrite writes to at an address of a process' code where from stands, both
// equally long, with all threads stopped, none of them within the bytes: at
// neither address but the first, nor, as far as stacks and signal frames show,
// to come back to one. It is like letting a debugger in for a moment: no thread
// executes anything for us, what was interrupted is restarted, and if this
// process is killed the kernel lets all of them go.
//
// Nothing has changed if the error is not nil. It wraps [ErrBusy], or
// [ErrUnsuited] for a process that has more than [tracer.MaxHeld] threads, is stopped
// or traced, or shares its memory with another one; else [ErrDenied] or
// [proc.ErrImageGone] or procid.ErrGone.
func Rewrite(ctx context.Context, process *proc.Handle, address uint64, from, to []byte) (result Rewritten, err error) {
	w := &rewriting{process: process, address: address, from: from, to: to}
	err = ErrBusy
	for result.Tries < holdTries && errors.Is(err, ErrBusy) && ctx.Err() == nil {
		if result.Tries > 0 {
			time.Sleep(holdPause)
		}
		result.Tries++
		err = tracer.Run(process, func(t *tracer.Tracer) error { return w.try(t, &result) })
	}
	if gone := process.Gone(); err != nil && gone != nil {
		err = gone
	}
	return result, errors.Join(err, ctx.Err())
}

// rewriting is code that is to be written over other code.
type rewriting struct {
	process  *proc.Handle
	address  uint64
	from, to []byte
	piece    [8 << 10]byte // of a stack that is looked at
}

// try does it once, and lets all threads go.
func (w *rewriting) try(t *tracer.Tracer, result *Rewritten) error {
	all, err := t.StopAll()
	if err == nil {
		err = all.Each(w.outside)
	}
	if err == nil {
		err = all.Check()
	}
	if err == nil {
		err = w.write()
	}
	all.LetGo()
	threads, since := all.Stopped()
	if result.Threads, result.Stopped = threads, 0; !since.IsZero() {
		result.Stopped = time.Since(since)
	}
	return err
}

// outside says why a thread would be harmed.
func (w *rewriting) outside(tid int, regs *unix.PtraceRegs) error {
	if w.within(regs.Rip) || !w.stacksClear(regs.Rsp) {
		return fmt.Errorf("%w: thread %d is within the bytes, or was when a signal came", ErrBusy, tid)
	}
	return nil
}

// within says whether a thread that goes on at an address would find other
// instructions than it should.
func (w *rewriting) within(address uint64) bool {
	return address > w.address && address < w.address+uint64(len(w.to))
}

// In a signal frame the word of the segments follows the flags, the place that
// was interrupted, and its stack.
const (
	segmentsWord = 0x2b<<48 | tracer.UserCode
	backToRIP    = 2
	backToRSP    = 3
	maxStacks    = 8
)

// stacksClear looks for addresses within the bytes on a thread's stack, and on
// those that signal handlers with a stack of their own have left.
func (w *rewriting) stacksClear(top uint64) bool {
	stacks := []uint64{top}
	for i := 0; i < len(stacks) && i < maxStacks; i++ {
		end := stacks[i] + maxStack
		for at := stacks[i] &^ 7; at < end; {
			n := w.process.ReadSome(at, w.piece[:]) &^ 7
			for j := 0; j+8 <= n; j += 8 {
				word := binary.LittleEndian.Uint64(w.piece[j:])
				switch {
				case w.within(word):
					return false
				case word == segmentsWord && j >= 8*backToRSP:
					stacks = append(stacks, binary.LittleEndian.Uint64(w.piece[j-8*backToRSP:]))
				}
			}
			if n < len(w.piece) {
				break
			}
			at += uint64(n)
		}
	}
	return true
}

// write changes the code, if it is what it was.
func (w *rewriting) write() error {
	now := make([]byte, len(w.from))
	if err := w.process.Read(w.address, now); err != nil {
		return err
	}
	if !bytes.Equal(now, w.from) {
		return fmt.Errorf("%w: the code at %#x is not what it was", ErrUnsuited, w.address)
	}
	return w.process.Write(w.address, w.to)
}
