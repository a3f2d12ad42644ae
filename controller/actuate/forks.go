// SPDX-License-Identifier: Apache-2.0

package actuate

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/attune-hpc/attune/controller/actuate/access"
	"github.com/attune-hpc/attune/internal/procid"
)

// copied is an undo of what lies in the memory of a process: a fork takes it along.
type copied interface {
	// InFork returns what takes it back in a fork that was made since, where it is still what
	// the change made of it; nil: a fork has nothing of it.
	InFork() Undo
}

// inFork returns the parts that take a change back in a fork.
func (u Undos) inFork() (parts Undos) {
	for _, part := range u {
		if c, ok := part.(copied); ok {
			if in := c.InFork(); in != nil {
				parts = append(parts, in)
			}
		}
	}
	return parts
}

// lineageOf is [access.LineageOf] for a change with these undos; zero: a fork has nothing of it.
func lineageOf(process access.Process, undo Undos) (access.Lineage, error) {
	if len(undo.inFork()) == 0 {
		return access.Lineage{}, nil
	}
	return access.LineageOf(process)
}

// forks takes changes back in what changed processes have forked (docs/design/0084). It may be
// used from any goroutine.
type forks struct {
	find access.Forks
	// member returns a process that the controller has; nil: it has it not, or there is
	// none. An error is why it must be left alone. It may be nil.
	member func(procid.Identity) (access.Process, error)
}

const (
	// atOnce bounds in how many forks of a process a change is taken back at one time.
	atOnce = 16
	// looks bounds how often forks are looked for: those found last may have forked before the
	// change was taken back in them, each time, but what a process forks from then on has
	// nothing of it, and some processes fork without end.
	looks = 4
)

// takeBack takes a change back in the forks that a process has made since the change, when
// it has been taken back there: what is forked then has nothing of it. What a fork has set
// itself stays. The caller waits for the locks of the forks, and has none of a process, or
// does not wait.
func (f *forks) takeBack(ctx context.Context, in Changed, undo Undos, lineage access.Lineage, wait bool) error {
	parts := undo.inFork()
	if len(parts) == 0 {
		return nil
	}
	var failed []error
	var unseen error
	done := make(map[procid.Identity]bool)
	for range looks {
		var found []procid.Identity
		found, unseen = f.find.Of(in.Process.Identity(), lineage)
		found = slices.DeleteFunc(found, func(fork procid.Identity) bool { return done[fork] })
		if len(found) == 0 {
			break
		}
		for _, fork := range found {
			done[fork] = true
		}
		failed = append(failed, f.takeBackInAll(ctx, in, parts, found, wait)...)
	}
	return errors.Join(append(failed, unseen)...)
}

// takeBackInAll takes parts of a change back in several forks.
func (f *forks) takeBackInAll(ctx context.Context, in Changed, parts Undos, found []procid.Identity, wait bool) (failed []error) {
	var mu sync.Mutex // guards failed
	var all errgroup.Group
	all.SetLimit(atOnce)
	for _, fork := range found {
		all.Go(func() error {
			errs := f.takeBackIn(ctx, in, parts, fork, wait)
			mu.Lock()
			defer mu.Unlock()
			failed = append(failed, errs...)
			return nil
		})
	}
	_ = all.Wait() // none returns an error
	return failed
}

// takeBackIn takes parts of a change back in one fork; nil as well where its image has gone
// meanwhile.
func (f *forks) takeBackIn(ctx context.Context, in Changed, parts Undos, fork procid.Identity, wait bool) (errs []error) {
	err := f.takeBackLocked(ctx, in, parts, fork, wait)
	if err == nil || access.ImageGone(fork) {
		return nil
	}
	for _, leaf := range leaves(err) {
		if !errors.Is(leaf, access.ErrChangedByOthers) {
			errs = append(errs, fmt.Errorf("in fork %d: %w", fork.PID, access.OutOfReach(leaf)))
		}
	}
	return errs
}

// takeBackLocked is takeBackIn with the fork's lock.
func (f *forks) takeBackLocked(ctx context.Context, in Changed, parts Undos, fork procid.Identity, wait bool) error {
	process, release, err := f.process(fork)
	if err != nil {
		return err
	}
	defer release()
	if wait {
		process.Lock()
	} else if !process.TryLock() {
		return errors.New("something is being changed: undo it again later")
	}
	defer process.Unlock()
	err = parts.takeBack(ctx, Changed{Process: process, others: in.others, id: in.id})
	if err != nil && (dying(process) || still(process) != nil) {
		return nil
	}
	return err
}

// process returns a fork as a process, to be released.
func (f *forks) process(fork procid.Identity) (process access.Process, release func(), err error) {
	if f.member != nil {
		if process, err = f.member(fork); err != nil || process != nil {
			return process, func() {}, err
		}
	}
	journaled := access.ProcessOf(fork)
	return journaled, journaled.Close, nil
}
