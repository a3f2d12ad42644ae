// SPDX-License-Identifier: Apache-2.0

package actuate

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/attune-hpc/attune/controller/actuate/access"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// ErrUnknownChange means that there is nothing to undo under that id.
var ErrUnknownChange = errors.New("no such change in force")

// appliedChange is a change in force. Its plan's undo, words and old value, and whether it is
// undone, are read with the lock of the process or that of the force, and written with both.
type appliedChange struct {
	id      string
	process access.Process
	plan    *Plan
	knob    string
	number  uint64    // in the order of execution
	since   time.Time // when it was made
	undone  bool      // in its process: only its forks may have it
	// gone: nothing is left to read back; the lock of the process guards it.
	gone bool
	// tending is what the change needs for as long as it is in force.
	tending *tending
	// ending is held while a change of the process is undone, in its forks as well, or what an
	// ended process leaves is taken back; it comes before the locks of processes. All changes
	// of a process have the same.
	ending *sync.Mutex
}

// force is the changes in force. It may be used by any number of goroutines.
type force struct {
	journal *Journal

	mu      sync.Mutex // guards what follows and what undoes it; comes after the lock of a process
	applied map[string]*appliedChange
	number  uint64 // of the latest change
	stopped bool
}

// enter puts a change in force; false if it came too late.
func (f *force) enter(change *attunev1.Change, process access.Process, p *Plan, since time.Time) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.stopped {
		return false
	}
	f.number++
	f.applied[change.GetId()] = &appliedChange{
		id: change.GetId(), process: process, plan: p, knob: change.GetKnob(), number: f.number, since: since, tending: startTending(p.Tend),
		ending: f.endingOf(process),
	}
	return true
}

// endingOf returns the lock of a process' changes that end. The caller holds mu.
func (f *force) endingOf(process access.Process) *sync.Mutex {
	for _, change := range f.applied {
		if change.process == process {
			return change.ending
		}
	}
	return new(sync.Mutex)
}

// stop lets nothing enter from then on.
func (f *force) stop() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.stopped = true
}

// find returns a change in force; nil: it is not.
func (f *force) find(id string) *appliedChange {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.applied[id]
}

// describe is a change in words; false: it is not in force.
func (f *force) describe(id string) (InForce, bool) {
	f.mu.Lock()
	change := f.applied[id]
	if change == nil {
		f.mu.Unlock()
		return InForce{}, false
	}
	undo, told := change.plan.Undo, change.plan.Told
	f.mu.Unlock() // what an undo tells it may read
	t := cmp.Or(told, undo.told(Changed{Process: change.process, others: f, id: id}))
	return InForce{
		ID: id, Knob: change.knob, PID: change.process.PID(), Since: change.since, Old: t.Old, New: t.New, Where: t.Where,
	}, true
}

// forget drops a change of which the journal knows the end.
func (f *force) forget(id string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.applied, id)
}

// drop forgets a change, and has the journal say why.
func (f *force) drop(id, outcome string) error {
	f.forget(id)
	return f.journal.end(id, outcome)
}

// of returns the changes of a process, the latest first.
func (f *force) of(process access.Process) (ids []string) {
	return slices.DeleteFunc(f.ids(), func(id string) bool {
		change := f.find(id)
		return change == nil || change.process != process
	})
}

// ids returns those of all, the latest first.
func (f *force) ids() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.SortedFunc(maps.Keys(f.applied), func(x, y string) int {
		return cmp.Compare(f.applied[y].number, f.applied[x].number)
	})
}

// later finds the changes after one that have an undo like that and are not undone in their
// process, the earliest first; none, if the one is not in force yet.
func (f *force) later(id string, like func(u Undo, in access.Process) bool) (all []*appliedChange) {
	f.mu.Lock()
	defer f.mu.Unlock()
	this := f.applied[id]
	for _, change := range f.applied {
		if this != nil && change.number > this.number && !change.undone && slices.ContainsFunc(change.plan.Undo, func(u Undo) bool { return like(u, change.process) }) {
			all = append(all, change)
		}
	}
	slices.SortFunc(all, func(x, y *appliedChange) int { return cmp.Compare(x.number, y.number) })
	return all
}

// laterHas implements [others].
func (f *force) laterHas(id string, like func(u Undo, in access.Process) bool) bool {
	return len(f.later(id, like)) > 0
}

// amendNext implements [others]. The caller holds the lock of the process.
func (f *force) amendNext(id string, like func(u Undo, in access.Process) bool, amended func(Undo) Undo) (bool, error) {
	later := f.later(id, like)
	if len(later) == 0 {
		return false, nil
	}
	err := f.amend(later[0], amended)
	return err == nil, err
}

// amendLater implements [others].
func (f *force) amendLater(in Changed, like func(u Undo, in access.Process) bool, amended func(u Undo, in access.Process) Undo) error {
	for _, later := range f.later(in.id, like) {
		if err := f.amendBeside(in, later, func(u Undo) Undo { return amended(u, later.process) }); err != nil {
			return err
		}
	}
	return nil
}

// amendBeside is amend for whoever holds the lock of the process of another change, if that has
// not ended. Two locks that are waited for could wait for each other.
func (f *force) amendBeside(in Changed, later *appliedChange, amended func(Undo) Undo) error {
	switch {
	case in.ended:
		later.process.Lock()
		defer later.process.Unlock()
	case later.process == in.Process: // the caller has it
	case later.process.TryLock():
		defer later.process.Unlock()
	default:
		return fmt.Errorf("change %s was made on top of it, in process %d where something is being changed: undo it again later", later.id, later.process.PID())
	}
	if f.find(later.id) != later || later.undone {
		return nil // undone meanwhile
	}
	return f.amend(later, amended)
}

// amend gives a change other undos, which tell from then on what is given back. The caller
// holds the lock of its process.
func (f *force) amend(change *appliedChange, amended func(Undo) Undo) error {
	undo := slices.Clone(change.plan.Undo)
	for i, part := range undo {
		undo[i] = amended(part)
	}
	return f.replaceUndo(change, undo)
}

// replaceUndo gives a change other undos, which the journal knows first. The caller holds the
// lock of its process.
func (f *force) replaceUndo(change *appliedChange, undo Undos) error {
	p := *change.plan
	p.Undo, p.Told, p.undone = undo, Told{}, change.undone
	if err := f.journal.begin(change.id, change.knob, change.process.Identity(), &p); err != nil {
		return err
	}
	f.mu.Lock() // for whoever looks at the changes of all processes
	defer f.mu.Unlock()
	change.plan.Undo, change.plan.Told, change.plan.Old = p.Undo, p.Told, nil
	return nil
}

// oldOf returns the value that there was before a change; nil: it is not known.
func (f *force) oldOf(change *appliedChange) *attunev1.Value {
	f.mu.Lock()
	defer f.mu.Unlock()
	return change.plan.Old
}

// undoOf returns what undoes a change, also in forks, for whoever does not hold the lock of its
// process.
func (f *force) undoOf(change *appliedChange) (Undos, access.Lineage) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return change.plan.Undo, change.plan.lineage
}
