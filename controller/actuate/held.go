// SPDX-License-Identifier: Apache-2.0

package actuate

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/attune-hpc/attune/controller/actuate/access"
	"github.com/attune-hpc/attune/internal/clock"
	"github.com/attune-hpc/attune/internal/procid"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// Hold ends an Actuator for another one that takes over. Of the changes in force those
// that have a lease stay until a time since boot, and the journal says so; the others are
// undone, the latest first, and so is what only this controller can take back, what
// outlives its process, and what several processes share. It tells of each undo, and returns
// those that stay, and why others do that could not be undone. Call it after [Actuator.Stop].
func Hold(
	ctx context.Context, a *Actuator, leases map[string]time.Duration, until time.Duration, tell func(undone *attunev1.ActionResult),
) (held []string, err error) {
	var errs []error
	var ending []string
	for _, id := range a.Applied() {
		if _, ok := leases[id]; ok && a.force.holdable(id) {
			held = append(held, id)
		} else {
			ending = append(ending, id)
		}
	}
	for result := range UndoEach(ctx, a, ending) {
		tell(result)
		errs = append(errs, Left(a, result))
	}
	for _, id := range held {
		if err := a.options.Journal.append(record{Op: "held", Change: id, Until: until, Lease: leases[id]}); err != nil {
			errs = append(errs, err) // the next controller takes it back at once
		}
		a.force.forget(id)
	}
	return held, errors.Join(errs...)
}

// holdable says whether another controller can go on with a change.
func (f *force) holdable(id string) bool {
	change := f.find(id)
	if change == nil || change.tending != nil {
		return false
	}
	change.process.Lock()
	defer change.process.Unlock()
	return !change.undone && change.process.Alive() && change.plan.Undo.holdable(Changed{Process: change.process, others: f, id: id})
}

// holdable says whether the parts can be taken back by whoever has the journal, and end
// with their process.
func (u Undos) holdable(in Changed) bool {
	return len(u) > 0 && !slices.ContainsFunc(u, func(part Undo) bool {
		_, shared := part.(common)
		about := part.About(in)
		return shared || !about.Keeps || about.Outlives || about.Spent
	})
}

// Holds says whether journals in dir hold something for the next controller.
func (k Kinds) Holds(dir string) (bool, error) {
	paths, err := journalsIn(dir)
	if err != nil {
		return false, err
	}
	var errs []error
	for _, path := range paths {
		open, err := newUndos(k.Undos).openChanges(path)
		open = slices.DeleteFunc(open, func(r record) bool { return r.Until == 0 })
		if len(notOver(open)) > 0 {
			return true, nil
		}
		if !errors.Is(err, os.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	return false, errors.Join(errs...)
}

// TakenOver is a change that was taken over, with its lease.
type TakenOver struct {
	ID    string
	Lease time.Duration
}

// TakeOver has an Actuator take over what earlier controllers hold in processes, by their
// journals in dir. find returns the process of an identity, nil where it is not this
// controller's or must be left alone; untouched says why nothing may be changed in it, empty: it
// may. What cannot be taken over because the image or the permission is another, or because
// somebody else has changed it, is taken back; a value that somebody else has set stays. What journals say of other processes is
// left to them. It waits for no process: what is held in one in which something is being
// changed is left to the next call. For an earlier controller that is just ending it waits
// a few seconds at most, see [lockLeft].
func TakeOver(a *Actuator, dir string, find func(procid.Identity) access.Process, untouched func(access.Process) string) (taken []TakenOver, err error) {
	paths, err := journalsIn(dir)
	if err != nil {
		return nil, err
	}
	var errs []error
	for _, path := range paths {
		journal, open, err := newUndos(a.options.Kinds.Undos).openLeft(path)
		if journal == nil {
			errs = append(errs, err)
			continue
		}
		for _, r := range open {
			process := find(*r.Process)
			if process == nil || !r.Process.SameProcess(process.Identity()) || !r.heldAt(clock.SinceBoot()) {
				continue
			}
			ok, err := takeOver(a, journal, r, process, untouched)
			if ok {
				taken = append(taken, TakenOver{r.Change, r.Lease})
			}
			errs = append(errs, err)
		}
		errs = append(errs, journal.Close())
	}
	return taken, errors.Join(errs...)
}

// takeOver takes one change over. It stands in one of the two journals at any time, or in
// both: then it is taken back.
func takeOver(a *Actuator, from *Journal, r record, process access.Process, untouched func(access.Process) string) (bool, error) {
	if !process.TryLock() {
		return false, nil
	}
	defer process.Unlock()
	why := untouched(process)
	in := Changed{Process: process, others: a.force, id: r.Change}
	change := &appliedChange{process: process, plan: &Plan{Undo: r.Undo, Told: r.Told, lineage: r.Lineage}, knob: r.Knob}
	switch {
	case !process.Alive() || still(process) != nil:
		return false, nil // who has the journal sees to what is left
	case why != "":
	case !r.Process.SameImage(process.Identity()):
		why = "the process executes another program"
	case r.Undone, a.force.find(r.Change) != nil, !r.Undo.holdable(in):
		why = "it is none that another controller can go on with"
	default:
		var err error
		if why, err = a.force.otherValue(r.Change, change); err != nil {
			return false, err
		}
	}
	if why != "" {
		err := r.takeBack(context.Background(), from.append, &a.endings.forks, false)
		a.log.Info("change of an earlier controller is taken back", "change", r.Change, "knob", r.Knob, "pid", process.PID(), "reason", why, "error", err)
		if err == nil || final(err) {
			err = from.end(r.Change, "undone")
		}
		return false, err
	}
	err := moveOver(a, from, r, process, change)
	if err == nil {
		a.log.Info("change taken over", "change", r.Change, "knob", r.Knob, "pid", process.PID())
	}
	return err == nil, err
}

// moveOver puts a change in force, and has it stand in the Actuator's journal instead of
// the one that it was left in.
func moveOver(a *Actuator, from *Journal, r record, process access.Process, change *appliedChange) error {
	identity := process.Identity()
	begin := record{Op: "begin", Time: r.Time, Change: r.Change, Knob: r.Knob, Process: &identity, Undo: r.Undo, Told: r.Told, Lineage: r.Lineage}
	if err := a.options.Journal.append(begin); err != nil {
		return err
	}
	if !a.force.enter(&attunev1.Change{Id: r.Change, Knob: r.Knob}, process, change.plan, r.Time) {
		return errors.Join(errStops, a.options.Journal.end(r.Change, "left"))
	}
	if err := from.end(r.Change, "taken over"); err != nil {
		return errors.Join(fmt.Errorf("change %s is not taken over: %w", r.Change, err), a.force.drop(r.Change, "left"))
	}
	return nil
}

// errStops is why a change is left where it is.
var errStops = errors.New("the controller stops")
