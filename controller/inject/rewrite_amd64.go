// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/controller/inject/tracer"
	"github.com/attune-hpc/attune/internal/beat"
	"github.com/attune-hpc/attune/internal/proc"
)

const (
	// holdTries is how often that is tried, and holdPause lies between two. No try begins
	// after holdPatience: each may wait long for threads that have no processor.
	holdTries    = 8
	holdPause    = 5 * time.Millisecond
	holdPatience = time.Second
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

// Rewrite makes changes to a process' code with all threads stopped, none of them
// within the bytes: at neither address but the first, nor, as far as stacks and signal
// frames show, to come back to one. It is like letting a debugger in for a moment: no
// thread executes anything for us, what was interrupted is restarted, and if this
// process is killed the kernel lets all of them go.
//
// Each change is made or not by itself, and those that a thread is in the way of are
// tried again, for a second at most, within which threads may also end transfers that a stop
// would cut short. If the error is not nil at least one was not made. It wraps [ErrBusy], or
// [ErrUnsuited] for code that is not what it was, and a process that has more than
// [tracer.MaxHeld] threads, is stopped or traced, or shares its memory with another one;
// else [ErrDenied] or [proc.ErrImageGone] or procid.ErrGone.
func Rewrite(ctx context.Context, process *proc.Handle, changes ...proc.Change) (result Rewritten, err error) {
	w := &rewriting{process: process, left: slices.Clone(changes)}
	slices.SortFunc(w.left, func(a, b proc.Change) int { return cmp.Compare(a.Address, b.Address) })
	patience, cancel := context.WithTimeout(ctx, holdPatience)
	defer cancel()
	err = ErrBusy
	for result.Tries < holdTries && errors.Is(err, ErrBusy) && patience.Err() == nil {
		if result.Tries > 0 && !beat.Pause(patience, holdPause) {
			break
		}
		if err = tracer.AwaitTransfers(patience, process.PID()); err != nil {
			break
		}
		result.Tries++
		err = tracer.Run(process, func(t *tracer.Tracer) error { return w.try(t, &result) })
	}
	err = errors.Join(w.failed, err)
	if gone := process.Gone(); err != nil && gone != nil {
		err = gone
	}
	return result, errors.Join(err, ctx.Err())
}

// rewriting is code that is to be written over other code.
type rewriting struct {
	process    *proc.Handle
	left       []proc.Change // not made yet, by address; they do not overlap
	first, end uint64        // of what is left
	busy       map[uint64]int
	failed     error           // why some will not be made
	piece      [1 << 10]uint64 // of a stack that is looked at
}

// try does it once, and lets all threads go.
func (w *rewriting) try(t *tracer.Tracer, result *Rewritten) error {
	w.busy = make(map[uint64]int)
	w.first, w.end = 0, 0
	if n := len(w.left); n > 0 {
		w.first, w.end = w.left[0].Address, w.left[n-1].Address+uint64(len(w.left[n-1].To))
	}
	all, err := t.StopAll()
	if err == nil {
		err = all.Each(w.look)
	}
	if err == nil {
		err = all.Check()
	}
	if err == nil {
		err = w.writeAll()
	}
	all.LetGo()
	threads, since := all.Stopped()
	if result.Threads, result.Stopped = threads, 0; !since.IsZero() {
		result.Stopped = time.Since(since)
	}
	return err
}

// look notes which changes a thread would be harmed by. There is no more to look at
// where that is all of them.
func (w *rewriting) look(tid int, regs *unix.PtraceRegs) error {
	w.note(tid, regs.Rip)
	w.noteStacks(tid, regs.Rsp)
	if len(w.busy) == len(w.left) {
		return w.errBusy()
	}
	return nil
}

func (w *rewriting) errBusy() error {
	for address, tid := range w.busy {
		return fmt.Errorf("%w: thread %d is within the bytes at %#x, or was when a signal came", ErrBusy, tid, address)
	}
	return nil
}

// note remembers the change that a thread would be harmed by which goes on at an
// address: it would find other instructions than it should.
func (w *rewriting) note(tid int, address uint64) {
	if address <= w.first || address >= w.end { // nearly all words of a stack
		return
	}
	i, _ := slices.BinarySearchFunc(w.left, address, func(c proc.Change, at uint64) int { return cmp.Compare(c.Address, at) })
	if c := w.left[i-1]; address < c.Address+uint64(len(c.To)) {
		w.busy[c.Address] = tid
	}
}

// In a signal frame the word of the segments follows the flags, the place that
// was interrupted, and its stack.
const (
	segmentsWord = 0x2b<<48 | tracer.UserCode
	backToRSP    = 3
	wordBytes    = 8
)

// noteStacks looks for addresses within the bytes on a thread's stacks.
func (w *rewriting) noteStacks(tid int, pointer uint64) {
	first, span := w.first, w.end-w.first
	eachStack(pointer, func(top uint64) (end uint64, left []uint64) {
		for end = top; end < top+maxStack; {
			words := w.piece[:w.process.ReadSome(end, bytesOf(w.piece[:]))/wordBytes]
			for j, word := range words { // all threads wait for it
				if word-first < span {
					w.note(tid, word)
				}
				if word != segmentsWord {
					continue
				}
				if stack, err := w.process.ReadWord(end + uint64(j)*wordBytes - backToRSP*wordBytes); err == nil {
					left = append(left, stack)
				}
			}
			end += uint64(len(words) * wordBytes)
			if len(words) < len(w.piece) {
				break
			}
		}
		return end, left
	})
}

// bytesOf is the memory that words lie in.
func bytesOf(words []uint64) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(&words[0])), len(words)*wordBytes)
}

// writeAll makes the changes that no thread is in the way of.
func (w *rewriting) writeAll() error {
	var left []proc.Change
	for _, c := range w.left {
		if _, busy := w.busy[c.Address]; busy {
			left = append(left, c)
		} else {
			w.failed = errors.Join(w.failed, w.write(c))
		}
	}
	w.left = left
	return w.errBusy()
}

// write changes the code, if it is what it was.
func (w *rewriting) write(c proc.Change) error {
	now := make([]byte, len(c.From))
	if err := w.process.Read(c.Address, now); err != nil {
		return err
	}
	if !bytes.Equal(now, c.From) {
		return fmt.Errorf("%w: the code at %#x is not what it was", ErrUnsuited, c.Address)
	}
	return w.process.Write(c.Address, c.To)
}
