// SPDX-License-Identifier: Apache-2.0

package actuate

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/attune-hpc/attune/controller/actuate/access"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// endings end changes in force. It may be used from any goroutine.
type endings struct {
	*force
	forks forks
}

// takeBack takes a change back that is in force, in its process and then in the forks of that,
// and ends it unless the error is not final; alive is false, and nothing done, if the process
// has ended. The caller holds the change's ending.
func (e *endings) takeBack(ctx context.Context, change *appliedChange) (alive bool, err error) {
	alive, err = e.takeBackLocked(ctx, change)
	if !alive || err != nil && !final(err) {
		return alive, err
	}
	inForks := e.takeBackInForks(ctx, change, Changed{Process: change.process, others: e.force, id: change.id})
	if inForks != nil && !final(inForks) {
		change.process.Lock()
		defer change.process.Unlock()
		return true, errors.Join(inForks, e.leaveToForks(change))
	}
	if err = errors.Join(err, inForks, e.journal.end(change.id, "undone")); err == nil || final(err) {
		e.forget(change.id)
	}
	return true, err
}

// takeBackInForks takes a change back in the forks of its process.
func (e *endings) takeBackInForks(ctx context.Context, change *appliedChange, in Changed) error {
	if above := e.aboveInForks(change, in.ended); above != nil {
		return fmt.Errorf("change %s, which was made on top of it, is not undone in all forks: undo it again later", above.id)
	}
	undo, lineage := e.undoOf(change)
	return e.forks.takeBack(ctx, in, undo, lineage, true)
}

// takeBackLocked is takeBack in the process alone. From then on no other change leaves anything to
// this one there.
func (e *endings) takeBackLocked(ctx context.Context, change *appliedChange) (alive bool, err error) {
	change.process.Lock()
	defer change.process.Unlock()
	if !change.process.Alive() {
		return false, nil
	}
	if change.undone {
		return true, nil
	}
	err = e.revert(ctx, change.id, change.knob, change.process, change.plan)
	if err == nil || final(err) {
		e.setUndone(change)
	}
	return true, err
}

// setUndone marks a change as undone in its process, whose lock the caller holds.
func (e *endings) setUndone(change *appliedChange) {
	e.mu.Lock()
	defer e.mu.Unlock()
	change.undone = true
}

// revert takes a plan back in its process, wholly or partly executed. The caller holds the
// process' lock.
func (e *endings) revert(ctx context.Context, changeID, knob string, process access.Process, p *Plan) error {
	rewrite := func() error { return e.journal.begin(changeID, knob, process.Identity(), p) }
	err := p.Undo.takeBack(ctx, Changed{Process: process, others: e.force, id: changeID, rewrite: rewrite})
	if err != nil && !final(err) {
		return fmt.Errorf("restore: %w", err)
	}
	return err
}

// leaveToForks has the journal say of a change that it was undone in its process, and that its
// forks have it yet. The caller holds the lock of its process.
func (e *endings) leaveToForks(change *appliedChange) error {
	return e.replaceUndo(change, change.plan.Undo.inFork())
}

// takeBackFailed takes back what was made of a change. What cannot be taken back for the time
// being is in force, so that it is undone later. The caller holds the process' lock.
func (e *endings) takeBackFailed(ctx context.Context, process access.Process, change *attunev1.Change, p *Plan) error {
	ctx = context.WithoutCancel(ctx)
	err := e.revert(ctx, change.GetId(), change.GetKnob(), process, p)
	undone := err == nil || final(err)
	var inForks error
	if undone {
		in := Changed{Process: process, others: e.force, id: change.GetId()}
		inForks = e.forks.takeBack(ctx, in, p.Undo, p.lineage, false)
		err = errors.Join(err, inForks)
	}
	if err == nil || final(err) {
		err = errors.Join(err, e.journal.end(change.GetId(), "undone"))
	}
	if err == nil || final(err) || dying(process) || !e.enter(change, process, p, time.Now()) {
		return err
	}
	if entered := e.find(change.GetId()); entered != nil && undone {
		e.setUndone(entered)
		if inForks != nil && !final(inForks) {
			err = errors.Join(err, e.leaveToForks(entered))
		}
	}
	return err
}

// release takes back what a process has left of a change that has ended or executes another
// program.
func (e *endings) release(id string) error {
	change := e.find(id)
	if change == nil {
		return nil
	}
	change.tending.end()
	change.ending.Lock()
	defer change.ending.Unlock()
	if e.find(id) != change {
		return nil // undone or released meanwhile
	}
	gone := access.ProcessOf(change.process.Identity())
	defer gone.Close()
	undo, _ := e.undoOf(change)
	in := Changed{Process: gone, others: e.force, id: id, ended: true}
	err := errors.Join(undo.takeBackLeft(in), e.takeBackInForks(context.Background(), change, in))
	if err != nil && !final(err) {
		return err
	}
	change.process.Lock() // nobody may write the change down anew when it has ended
	defer change.process.Unlock()
	return errors.Join(err, e.drop(id, "gone"))
}

// takeBackLeft takes back what may be left of a change when its process has ended.
func (u Undos) takeBackLeft(in Changed) error {
	var errs []error
	for _, part := range u {
		if left := part.About(in); left.Outlives || left.Inherited {
			errs = append(errs, part.TakeBack(context.Background(), in))
		}
	}
	return errors.Join(errs...)
}
