// SPDX-License-Identifier: Apache-2.0

package tracer

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/internal/procid"
)

const (
	// A search is not given up after few looks only because the machine is busy,
	// until it has lasted leastLooksTimes as long as it may.
	leastLooks      = 10
	leastLooksTimes = 5
	pauseFirst      = 100 * time.Microsecond
	pauseMost       = 4 * time.Millisecond
	// maxCandidates bounds how many threads are looked at in one round.
	maxCandidates = 64
	// mostPassed is how many threads are let go for another one to be found that
	// can have a lifeline.
	mostPassed = 4
	// againAfter is how long a thread is left alone that was stopped for a look in a
	// call which is made again, so that its timeout begins anew.
	againAfter = 100 * time.Millisecond
)

// SearchOptions says which thread is looked for.
type SearchOptions struct {
	// Thread is the only one that will do; 0: any.
	Thread int
	// Anywhere says that a thread need not stand in a system call that holds nothing:
	// then those are looked at, too, that sleep in another one.
	Anywhere bool
	// Suits says whether a thread that is stopped will do.
	Suits func(t *Thread, regs *unix.PtraceRegs) bool
	// Patience bounds the search.
	Patience time.Duration
	// Among leaves threads out; for tests, else nil.
	Among func(tid int) bool
}

// Search looks for a thread that stands well: it stops one after the other, and lets
// those go at once that do not.
type Search struct {
	borrower *Borrower
	options  SearchOptions
	until    time.Time         // when it ends
	looks    int               // how often a thread was looked at, stopped for that or not
	slow     map[int]bool      // threads that did not stop in time: the others come first
	passed   map[int]bool      // threads that were passed over for one with a lifeline
	seen     map[int]time.Time // when a thread was last stopped for a look
}

// NewSearch begins a search, whose patience begins to run.
func NewSearch(b *Borrower, o SearchOptions) *Search {
	return &Search{
		borrower: b, options: o, until: time.Now().Add(o.Patience),
		slow: make(map[int]bool), passed: make(map[int]bool), seen: make(map[int]time.Time),
	}
}

// Find calls use with the first thread that suits, and returns its error. The thread
// stands, in a process that is still the program that was to be entered; to let it go
// is up to use, which says whether it is done. If not, and its error is but the end of
// that thread, others are tried. Without a thread Find returns [ErrNoSafePoint], the
// process' end, or an error for [Run]. It adds to the cost.
func (s *Search) Find(ctx context.Context, t *Tracer, cost *Cost, use Use) error {
	t.lender = newLender()
	for pause := pauseFirst; ; pause = min(2*pause, pauseMost) {
		t.sweep()
		tids, err := s.candidates()
		if err != nil {
			return err
		}
		for _, tid := range tids {
			if s.options.Among != nil && !s.options.Among(tid) {
				continue
			}
			used, err := s.try(t, tid, cost, use)
			switch {
			case used || err != nil && !errors.Is(err, errLate) && !t.passing(err):
				return err
			case err != nil || len(t.late) > 0:
				return s.held(ctx)
			}
		}
		clear(s.slow) // all others have had their turn
		if ctx.Err() != nil {
			return noTime(ctx)
		}
		if err := t.process.Gone(); err != nil {
			return err
		}
		if s.allRefused(tids) || s.over() {
			return s.noPlace()
		}
		time.Sleep(pause)
	}
}

// candidates lists threads to try, those first that block in a system call
// which can be restarted as if nothing had been. Those that a stop would cut short come
// last: they are only looked at from outside.
func (s *Search) candidates() ([]int, error) {
	pid := s.borrower.process.PID()
	if only := s.options.Thread; only != 0 {
		if gone := s.borrower.process.Gone(); gone != nil || Exists(pid, only) {
			return []int{only}, gone
		}
		return nil, fmt.Errorf("%w: thread %d has ended", ErrNoSafePoint, only)
	}
	tids, err := procid.Threads(pid)
	if err != nil {
		return nil, err
	}
	var blocked, others, spared []int
	for _, tid := range tids {
		switch call, ok := CurrentCall(pid, tid); {
		case ok && call.midway(pid, tid):
			spared = append(spared, tid)
		case ok && traits[call.Number]&borrowable != 0:
			blocked = append(blocked, tid)
		default:
			others = append(others, tid)
		}
		if len(blocked) >= maxCandidates {
			break
		}
	}
	all := slices.Concat(blocked, others, spared)
	return all[:min(len(all), maxCandidates)], nil
}

// held is why a search ends that goes on in another OS thread, unless its time
// is over.
func (s *Search) held(ctx context.Context) error {
	switch {
	case ctx.Err() != nil:
		return noTime(ctx)
	case s.over():
		return s.noPlace()
	}
	return errHeld
}

// noTime says that nobody waited for a place any longer: nothing was done.
func noTime(ctx context.Context) error {
	return fmt.Errorf("%w: %w", ErrNoSafePoint, context.Cause(ctx))
}

// allRefused says whether the filters of all threads stand against us.
func (s *Search) allRefused(tids []int) bool {
	return len(tids) > 0 && !slices.ContainsFunc(tids, func(tid int) bool { return !s.borrower.refused(tid) })
}

// noPlace says why no thread would do.
func (s *Search) noPlace() error {
	if err := s.borrower.refusal(); err != nil {
		return err
	}
	took := s.options.Patience + time.Since(s.until)
	err := fmt.Errorf("%w: %d looks in %v", ErrNoSafePoint, s.looks, took.Round(time.Millisecond))
	tids, _ := s.candidates() // without them nothing more is to be said
	if why := transferOf(s.borrower.process.PID(), tids...); why != nil {
		return fmt.Errorf("%w; %w", err, why)
	}
	return err
}

// over says whether the search has had its time, and its looks.
func (s *Search) over() bool {
	late := time.Since(s.until)
	return late > 0 && s.looks >= leastLooks || late > (leastLooksTimes-1)*s.options.Patience
}

// try looks at one thread and has it used if it stands well.
func (s *Search) try(t *Tracer, tid int, cost *Cost, use Use) (used bool, err error) {
	if s.slow[tid] || s.borrower.refused(tid) {
		return false, nil
	}
	s.looks++
	if s.spares(tid) {
		return false, nil
	}
	s.borrower.lifelines.know(tid)
	thread, err := t.seize(tid)
	if err != nil {
		return false, err
	}
	cost.Attempts++
	s.seen[tid] = time.Now()
	t.lender.lend(tid)
	defer t.lender.end()
	if err := t.stop(thread); err != nil {
		if errors.Is(err, ErrUnsuited) {
			return false, errors.Join(err, thread.letGo(0))
		}
		t.late[tid] = true // it stops later, or its end is still to be taken
		s.slow[tid] = true
		return false, err
	}
	stopped := thread.running // it did not stop before
	regs, err := thread.Registers()
	if err != nil || s.borrower.permits(thread) != nil || !s.options.Suits(thread, &regs) || t.faulting(tid, &regs) || s.passOver(tid, &regs) {
		t.letGoOn(thread)
		cost.Disturbed += time.Since(stopped)
		return false, nil //nolint:nilerr // it has ended
	}
	cost.Thread = tid
	used, err = t.useChecked(thread, use)
	cost.Stopped = time.Since(stopped)
	if errors.Is(err, ErrInterrupted) {
		t.late[tid] = true
	}
	return used, err
}

// spares says whether a look from outside is enough: the thread sleeps in a call which
// a stop would cut short, or in which it could not do the job, or its timeout is to be
// spared.
func (s *Search) spares(tid int) bool {
	pid := s.borrower.process.PID()
	call, ok := CurrentCall(pid, tid)
	if !ok {
		return false
	}
	return call.midway(pid, tid) || traits[call.Number]&borrowable == 0 && !s.options.Anywhere ||
		traits[call.Number]&interruptible != 0 && time.Since(s.seen[tid]) < againAfter
}

// passOver says whether to try another thread first: this one would be lost if
// the tracer were killed. Each is passed over once, and few are.
func (s *Search) passOver(tid int, regs *unix.PtraceRegs) bool {
	if s.options.Thread != 0 || s.passed[tid] || len(s.passed) >= mostPassed || s.borrower.mayHaveLifeline(tid, regs) {
		return false
	}
	s.passed[tid] = true
	return true
}
