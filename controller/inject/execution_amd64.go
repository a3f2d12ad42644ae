// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/controller/inject/tracer"
	"github.com/attune-hpc/attune/dmlib"
	"github.com/attune-hpc/attune/internal/objfile"
	"github.com/attune-hpc/attune/internal/proc"
)

// MaxCode is how long the code of [Execute] may be, bytes.
const MaxCode = 3840

// ExecuteOptions says who executes code, and how long that may take.
type ExecuteOptions struct {
	// Thread that does it, as the caller numbers it; 0: whichever stands well.
	Thread int
	// Anywhere says that the code takes no lock and calls no function: then it
	// need not wait for a place where dlopen(3) could be called.
	Anywhere bool
	// Suits is asked as well whether a thread will do that stands in a system
	// call, with its first argument, or in none: call is -1 then. nil: each will.
	Suits func(call int64, argument uint64) bool
	// At is an address, of a function's entry, where a thread does it when it
	// comes there by itself: a safe point that the caller names. No thread is
	// stopped before. 0: at a place where dlopen(3) could be called.
	At uint64
	// AtExit does it where the function that begins at At returns to.
	AtExit bool
	// Patience bounds the search for a place. 0: 2 seconds.
	Patience time.Duration
	// Timeout bounds the code. 0: 5 seconds.
	Timeout time.Duration
	// Cache keeps ELF files open; may be nil.
	Cache *objfile.Cache
}

func (o ExecuteOptions) withDefaults() ExecuteOptions {
	o.Patience = cmp.Or(o.Patience, defaultPatience)
	o.Timeout = cmp.Or(o.Timeout, defaultTimeout)
	o.Anywhere = o.Anywhere || o.At != 0
	return o
}

// execution has a thread that is borrowed call code.
type execution struct {
	options ExecuteOptions
	caller  caller
	ground  *ground // where a thread may be borrowed; nil: anywhere
	job     job
	value   uint64 // what the code returned
}

// newExecution finds what tells a place where the code may be called. died ends the
// tracer's thread in the middle; for tests, else nil.
func newExecution(process *proc.Handle, code []byte, o ExecuteOptions, died func(string) bool) (*execution, error) {
	s, err := tracer.Check(process.PID())
	if err != nil {
		return nil, err
	}
	e := &execution{options: o.withDefaults(), job: job{code: code}}
	if e.job.image, err = dmlib.Entry(); err != nil {
		return nil, err
	}
	gadget, err := e.findPlace(process)
	if err != nil {
		return nil, err
	}
	e.caller = caller{process: process, timeout: e.options.Timeout, borrower: tracer.NewBorrower(process, s, tracer.BorrowerOptions{
		Gadget: gadget, Needs: callNeeds, Died: died,
	})}
	if room, err := objfile.FreePage(process.PID()); err == nil { // else the kernel finds some
		e.caller.room = room
	}
	return e, nil
}

// findPlace finds where a thread may be borrowed, and what it makes system calls by.
func (e *execution) findPlace(process *proc.Handle) (tracer.Gadget, error) {
	if e.options.Anywhere {
		return anyGadget(process)
	}
	images, err := e.options.Cache.Images(process.PID())
	if err != nil {
		return tracer.Gadget{}, err
	}
	own, apart, err := ofProgram(process, images)
	if err != nil {
		return tracer.Gadget{}, err
	}
	if e.ground, err = newGround(process, own, apart); err != nil {
		return tracer.Gadget{}, err
	}
	return e.ground.gadget, nil
}

// anyGadget finds the gadget of a process with any C library, or none.
// [ErrInterrupted] if it is just becoming another program: what was mapped is
// not there any more, or the last part of the new one not yet, the kernel's own.
func anyGadget(process *proc.Handle) (tracer.Gadget, error) {
	all, err := objfile.AllMappings(process.PID())
	if err != nil {
		return tracer.Gadget{}, err
	}
	files := objfile.Files(all)
	slices.SortStableFunc(files, libcFirst)
	for _, m := range files {
		if !m.Exec {
			continue
		}
		gadget, err := tracer.FindGadget(process, tracer.Span{Start: m.Start, End: m.End})
		if err == nil {
			return gadget, nil
		}
		if !errors.Is(err, tracer.ErrNoGadget) {
			return gadget, ErrInterrupted
		}
	}
	if !slices.ContainsFunc(all, func(m objfile.Mapping) bool { return m.Path == "[vdso]" }) {
		return tracer.Gadget{}, ErrInterrupted
	}
	return tracer.Gadget{}, fmt.Errorf("%w: %w in it", ErrUnsuited, tracer.ErrNoGadget)
}

// libcFirst is the order to look for a gadget in: what else has the bytes of a
// system call has no signal restorer, without which there is no lifeline.
func libcFirst(a, b objfile.Mapping) int {
	rank := func(m objfile.Mapping) int {
		switch name := filepath.Base(m.Path); {
		case strings.HasPrefix(name, "libc.") || strings.HasPrefix(name, "libc-"):
			return 0
		case strings.HasPrefix(name, "ld-musl"):
			return 1
		}
		return 2
	}
	return rank(a) - rank(b)
}

// run has the code executed by a thread that stands well.
func (e *execution) run(ctx context.Context) (cost tracer.Cost, err error) {
	search := tracer.NewSearch(e.caller.borrower, tracer.SearchOptions{
		Thread: e.options.Thread, Anywhere: e.options.Anywhere, Suits: e.suits, Patience: e.options.Patience,
	})
	err = tracer.Run(e.caller.process, func(t *tracer.Tracer) error { return search.Find(ctx, t, &cost, e.do) })
	return cost, interrupted(e.caller.process, err)
}

// suits says whether a stopped thread stands where it may do the job.
func (e *execution) suits(t *tracer.Thread, regs *unix.PtraceRegs) bool {
	if e.options.Suits != nil && !e.options.Suits(max(int64(regs.Orig_rax), -1), regs.Rdi) {
		return false
	}
	if e.ground == nil {
		return e.caller.borrower.Borrowable(t, regs)
	}
	return e.ground.safe(t, regs)
}

// do has a thread, which stands, call the code.
func (e *execution) do(t *tracer.Thread) (done bool, err error) {
	c, err := e.caller.open(t, &e.job)
	if c == nil {
		return false, errors.Join(err, t.LetGo())
	}
	if err == nil {
		err = c.make(nil)
	}
	if err == nil {
		e.value = c.answer.value
	}
	return c.end(err)
}

// Calling returns code for [Execute] that calls the function at an address,
// which takes no parameters, and returns what it returns.
func Calling(function uint64) []byte {
	code := binary.LittleEndian.AppendUint64([]byte{0x48, 0xb8}, function) // movabs $function,%rax
	return append(code, 0xff, 0xe0)                                        // jmp *%rax
}
