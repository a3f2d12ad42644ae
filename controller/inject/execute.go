// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"context"
	"fmt"
	"time"

	"github.com/attune-hpc/attune/internal/objfile"
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
func Execute(ctx context.Context, process *procid.Process, code []byte, o ExecuteOptions) (value uint64, result Result, err error) {
	if len(code) > MaxCode {
		return 0, Result{}, fmt.Errorf("%w: %d bytes of code, at most %d", ErrUnsuited, len(code), MaxCode)
	}
	if err := checkState(process.PID()); err != nil {
		return 0, Result{}, err
	}
	job := &execution{code: code}
	plan, err := newExecution(process.PID(), job, o)
	if err != nil {
		return 0, Result{}, err
	}
	result, err = plan.runAlone(ctx, process)
	return job.value, result, err
}

// newExecution is newPlan for code.
func newExecution(pid int, job *execution, o ExecuteOptions) (*plan, error) {
	options := Options{Patience: o.Patience, Timeout: o.Timeout, Cache: o.Cache}
	if options.Patience == 0 {
		options.Patience = defaultPatience
	}
	if options.Timeout == 0 {
		options.Timeout = defaultTimeout
	}
	p := &plan{options: options, pid: pid, late: make(map[int]bool), job: job, thread: o.Thread, anywhere: o.Anywhere}
	if o.Anywhere {
		return p, p.ground.findAnyGadget(pid)
	}
	images, err := o.Cache.Images(pid)
	if err != nil {
		return nil, err
	}
	p.ground, err = newGround(pid, images)
	return p, err
}

// findAnyGadget is findGadget for a process with any C library, or none.
func (g *ground) findAnyGadget(pid int) error {
	mappings, err := objfile.Mappings(pid)
	if err != nil {
		return err
	}
	for _, m := range mappings {
		if !m.Exec {
			continue
		}
		g.libc = span{m.Start, m.End}
		if err = g.findGadget(pid); err == nil {
			return nil
		}
	}
	return fmt.Errorf("%w: no system call instruction in it", ErrUnsuited)
}

// threads lists those that may do the job, the likeliest first.
func (p *plan) threads() ([]int, error) {
	if p.thread != 0 {
		return []int{p.thread}, nil
	}
	return candidates(p.pid)
}
