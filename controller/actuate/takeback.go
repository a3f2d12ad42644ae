// SPDX-License-Identifier: Apache-2.0

package actuate

import (
	"errors"
	"slices"

	"github.com/attune-hpc/attune/controller/actuate/system"
)

// takeBack restores one word, unless a later change has it as well: then that
// one will restore what was there before both. The journal knows it first. The
// caller holds the process' lock.
func (a *Actuator) takeBack(changeID string, process Process, w Word) error {
	id, later := a.next(changeID, process, w.Address)
	if later == nil {
		images, err := process.Images()
		if err != nil {
			return err
		}
		return restoreWord(process.PID(), images, w)
	}
	p := *later.plan
	p.words = slices.Clone(p.words)
	for i := range p.words {
		if p.words[i].Address == w.Address {
			p.words[i].Old = w.Old
		}
	}
	if err := a.options.Journal.begin(id, later.knob, process.Identity(), &p); err != nil {
		return err
	}
	later.plan.words = p.words
	return nil
}

// next finds the first change after this one that replaced the same word; nil
// if there is none.
func (a *Actuator) next(changeID string, process Process, address uint64) (id string, next *appliedChange) {
	a.mu.Lock()
	defer a.mu.Unlock()
	this := a.applied[changeID]
	if this == nil {
		return "", nil // not in force yet, so none is later
	}
	for other, change := range a.applied {
		if change.process != process || change.number <= this.number || (next != nil && next.number < change.number) {
			continue
		}
		if slices.ContainsFunc(change.plan.words, func(w Word) bool { return w.Address == address }) {
			id, next = other, change
		}
	}
	return id, next
}

// final says whether undoing again would be of no use, of each part that
// failed.
func final(err error) bool {
	if parts, ok := err.(interface{ Unwrap() []error }); ok {
		return !slices.ContainsFunc(parts.Unwrap(), func(part error) bool { return !final(part) })
	}
	return errors.Is(err, ErrChangedByOthers) || errors.Is(err, ErrCallNotUndoable) ||
		errors.Is(err, ErrLibraryStays) || errors.Is(err, system.ErrNoUndo)
}
