// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/attune-hpc/attune/internal/objfile"
	"github.com/attune-hpc/attune/internal/proc"
	"github.com/attune-hpc/attune/internal/procid"
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

// Execute makes a thread of the process call code: a function without
// parameters, independent of its address, that returns a word. Its stack has
// 256 KiB, its memory is gone afterwards. Without DMLib, and leaving nothing
// behind; like [Inject] in all else, errors included.
func Execute(ctx context.Context, process *proc.Handle, code []byte, o ExecuteOptions) (value uint64, result Result, err error) {
	if len(code) > MaxCode {
		return 0, Result{}, fmt.Errorf("%w: %d bytes of code, at most %d", ErrUnsuited, len(code), MaxCode)
	}
	status, err := checkState(process.PID())
	if err != nil {
		return 0, Result{}, err
	}
	plan, err := newExecution(process, status, code, o)
	if err != nil {
		return 0, Result{}, err
	}
	defer plan.close()
	result, err = plan.runAlone(ctx)
	return plan.value, result, err
}

// newExecution is newPlan for code. The caller closes it.
func newExecution(process *proc.Handle, s procid.Status, code []byte, o ExecuteOptions) (p *plan, err error) {
	options := Options{patience: o.Patience, timeout: o.Timeout, Cache: o.Cache}
	if p, err = emptyPlan(process, s, options.withDefaults()); err != nil {
		return nil, err
	}
	p.code, p.thread, p.anywhere = code, o.Thread, o.Anywhere || o.At != 0
	p.also = o.Suits
	p.exit = o.AtExit
	if o.At != 0 {
		p.at = []uint64{o.At}
	}
	if err = p.findPlace(); err != nil {
		return nil, errors.Join(err, p.close())
	}
	if room, err := proc.FreePage(process.PID()); err == nil { // else the kernel finds some
		p.room = room
	}
	return p, nil
}

// findPlace finds what tells a place where the code may be called.
func (p *plan) findPlace() error {
	if p.anywhere {
		return p.ground.findAnyGadget(p.process)
	}
	images, err := p.options.Cache.Images(p.pid)
	if err != nil {
		return err
	}
	p.ground, err = newGround(p.process, images)
	return err
}

// findAnyGadget is findGadget for a process with any C library, or none.
// [ErrInterrupted] if it is just becoming another program: what was mapped is
// not there any more, or the last part of the new one not yet, the kernel's own.
func (g *ground) findAnyGadget(process *proc.Handle) error {
	all, err := objfile.AllMappings(process.PID())
	if err != nil {
		return err
	}
	whole := slices.ContainsFunc(all, func(m objfile.Mapping) bool { return m.Path == "[vdso]" })
	files := objfile.Files(all)
	slices.SortStableFunc(files, libcFirst)
	for _, m := range files {
		if !m.Exec {
			continue
		}
		g.libc = span{m.Start, m.End}
		if err = g.findGadget(process); err == nil {
			return nil
		}
		if !errors.Is(err, ErrUnsuited) {
			return ErrInterrupted
		}
	}
	if !whole {
		return ErrInterrupted
	}
	return fmt.Errorf("%w: no system call instruction in it", ErrUnsuited)
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

// threads lists those that may do the job, the likeliest first.
func (p *plan) threads() ([]int, error) {
	if p.thread != 0 {
		return []int{p.thread}, nil
	}
	return candidates(p.pid)
}
