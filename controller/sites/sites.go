// SPDX-License-Identifier: Apache-2.0

package sites

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/attune-hpc/attune/controller/patch"
)

// ErrUnknown means that there is no action of that name.
var ErrUnknown = errors.New("no such action in the process")

// Sites owns the patched entries and returns of one process. It may be used from any
// goroutine.
type Sites struct {
	process   Process
	functions *Functions

	mu     sync.Mutex // guards what follows; held while something is changed
	memory codeMemory
	known  known
	// disarmed: what others left measures nothing.
	disarmed bool
}

// NewSites returns the owner for a process in which nothing is patched yet, or
// which inherited patches from its parent. There must be one only. functions
// is shared by all processes of a node.
func NewSites(process Process, functions *Functions) *Sites {
	return &Sites{process: process, functions: functions, known: make(known)}
}

// changer puts together all that makes changes; not nil, also where there is an error.
// The caller holds mu while it uses it.
func (s *Sites) changer() (*changer, error) {
	w, err := writerOf(s.process)
	b := builder{writer: w, memory: &s.memory}
	return &changer{finder: finder{builder: b, functions: s.functions, known: s.known}}, err
}

// Prepare finds out whether an action can be done on a function, has memory
// mapped for it (DMLib does it at its next hook or in the start gate, and ctx
// bounds the wait), and returns the code that Add will change, for the
// journal. Nothing is changed yet. Preparing again costs little. The error
// wraps [patch.ErrUnpatchable] where the function's code is the reason and
// [patch.ErrAction] where the action is, else it is [ErrNoDMLib],
// [ErrConflict] or one of the mailbox.
func (s *Sites) Prepare(ctx context.Context, f Function, step patch.Step) ([]Bytes, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c, err := s.changer()
	if err != nil {
		return nil, err
	}
	fn, do, err := c.plan(ctx, f, step)
	if err != nil {
		return nil, err
	}
	var code []Bytes
	for _, p := range fn.spots(do) {
		if _, err := c.program(ctx, p, do.at(p == fn.entry)); err != nil {
			return nil, err
		}
		if err := p.rehearse(ctx, c.writer); err != nil {
			return nil, err
		}
		if step.AtExit() == (p != fn.entry) {
			code = append(code, p.bytes(fn.Function))
		}
	}
	return code, nil
}

// plan finds the function, with everything mapped that it needs, and what
// would be done there with one more action.
func (c *changer) plan(ctx context.Context, f Function, step patch.Step) (*function, doing, error) {
	if err := step.Check(); err != nil {
		return nil, doing{}, err
	}
	if c.functions.kernel(KeyOf(f)) {
		return nil, doing{}, ErrWatched
	}
	fn := c.known.at(f)
	if err := c.need(ctx, fn, !step.AtExit(), step.AtExit()); err != nil {
		return nil, doing{}, err
	}
	do, err := fn.do.with(step)
	switch {
	case err == nil && fn.tails && step.TakesResult():
		err = errTail
	case err == nil && step.EachCall():
		err = c.straight(fn)
	}
	return fn, do, err
}

// Add does an action on a function from now on, in addition to whatever else
// is done there. The step's name is the caller's, unique in the process. At an entry,
// calls are counted first, then parameters are changed, then calls made, then
// the function is replaced or removed, which exclude each other. If the error
// is not nil nothing has changed.
func (s *Sites) Add(ctx context.Context, f Function, step patch.Step) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if step.Name == "" || s.known.named(step.Name) != nil {
		return fmt.Errorf("an action named %q is there already", step.Name)
	}
	c, err := s.changer()
	if err != nil {
		return err
	}
	fn, do, err := c.plan(ctx, f, step)
	if err != nil {
		return err
	}
	if err := s.functions.act(KeyOf(f)); err != nil {
		return err
	}
	if err := c.change(ctx, fn, do); err != nil {
		s.functions.rest(KeyOf(f))
		return err
	}
	return nil
}

// Drop ends an action. What else is done at the function goes on without a hit
// missed; if nothing is, its code is what it was, or the error says that the
// jump, which does nothing any more, stays until threads can be stopped for
// taking it out. [ErrUnknown] if there is none of that name. A library that was
// unloaded meanwhile is no error.
func (s *Sites) Drop(ctx context.Context, name string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	fn := s.known.named(name)
	if fn == nil {
		return ErrUnknown
	}
	c, err := s.changer()
	if err == nil {
		err = c.change(ctx, fn, fn.do.without(name))
	}
	if err == nil || errors.Is(err, errStays) {
		s.functions.rest(KeyOf(fn.Function))
	}
	return err
}

// Inherited returns the names of the actions that a process was born with at the entry
// of a function, or at its exits, because its parent had them. They can be dropped.
func (s *Sites) Inherited(ctx context.Context, f Function, atExit bool) (names []string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c, err := s.changer()
	if err != nil {
		return nil, err
	}
	fn := s.known.at(f)
	if err := c.need(ctx, fn, !atExit, atExit); err != nil {
		return nil, err
	}
	for _, step := range fn.do.at(!atExit).Steps {
		names = append(names, step.Name)
	}
	return names, nil
}

// atSafePoints is which of a function's numbers is not for measuring.
const atSafePoints = -1

// SafePoint is a number of a function's own for commands that wait for its next
// entry ([shm.Command]): a [Sites.Measure] of it comes and goes beside what is
// measured there.
func (s *Sites) SafePoint(f Function) (int, error) {
	return s.Number(f, Where{Entry: true}, atSafePoints)
}

// Number returns one of the numbers of a function for measuring it at some places, from
// the 0th on. In the process only patches of this controller's count under it.
func (s *Sites) Number(f Function, at Where, nth int) (int, error) {
	if err := s.DisarmOthers(); err != nil {
		return 0, err
	}
	return s.functions.number(KeyOf(f), at, nth)
}

// DisarmOthers has the patches that an earlier controller left in the process, or in one
// that it comes from, measure nothing any more: they would count for whatever has their
// numbers now. Calls pass through them until they are asked for again, and actions go
// on. It looks once, and only where DMLib serves this controller: [ErrNoDMLib].
func (s *Sites) DisarmOthers() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.disarmed {
		return nil
	}
	w, err := writerOf(s.process)
	switch {
	case err != nil:
		return err
	case w.dmlib == nil:
		return ErrNoDMLib
	}
	if err := w.disarm(s.functions.self()); err != nil {
		return fmt.Errorf("patches of an earlier controller: %w", err)
	}
	s.disarmed = true
	return nil
}

// Forget drops what is kept of a process that has ended.
func (s *Sites) Forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, fn := range s.known {
		for range fn.do.steps {
			s.functions.rest(KeyOf(fn.Function))
		}
		s.functions.ends(KeyOf(fn.Function), len(fn.do.numbers()))
	}
	clear(s.known)
}
