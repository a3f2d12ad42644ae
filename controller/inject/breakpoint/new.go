// SPDX-License-Identifier: Apache-2.0

package breakpoint

import (
	"errors"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/controller/inject/tracer"
	"github.com/attune-hpc/attune/internal/proc"
)

// Options says where threads are stopped, and by what.
type Options struct {
	// Addresses are the entries of functions.
	Addresses []uint64
	// AtExit says that it may as well stop threads at the exit of the function that
	// begins there, if the kind can ([Breakpoint]).
	AtExit bool
	// Probed says that it is a probe of the kernel's, rather than a debug register.
	Probed bool
}

// New makes a breakpoint at one or more addresses of a process.
func New(process *proc.Handle, o Options) (Breakpoint, error) {
	var s several
	for _, address := range o.Addresses {
		if !o.Probed {
			s = append(s, registers{address, make(map[int]int)})
			continue
		}
		p, err := newProbed(process, address, o.AtExit)
		if err != nil {
			return nil, errors.Join(err, s.Close())
		}
		s = append(s, p)
	}
	return s, nil
}

// several are breakpoints at some addresses, of one kind.
type several []Breakpoint

func (s several) Set(tid int) error {
	for _, b := range s {
		if err := b.Set(tid); err != nil {
			return err
		}
	}
	return nil
}

func (s several) Stopped(t *tracer.Thread, signal unix.Signal) bool {
	return slices.ContainsFunc(s, func(b Breakpoint) bool { return b.Stopped(t, signal) })
}

func (s several) AtExit() bool {
	return slices.ContainsFunc(s, func(b Breakpoint) bool { return b.AtExit() })
}

func (s several) Reached(tid int, stack uint64) bool {
	return slices.ContainsFunc(s, func(b Breakpoint) bool { return b.Reached(tid, stack) })
}

func (s several) Unset(tid int) {
	for _, b := range s {
		b.Unset(tid)
	}
}

func (s several) Pause(on bool) {
	for _, b := range s {
		b.Pause(on)
	}
}

func (s several) Disable() {
	for _, b := range s {
		b.Disable()
	}
}

func (s several) Close() (err error) {
	for _, b := range s {
		err = errors.Join(err, b.Close())
	}
	return err
}
