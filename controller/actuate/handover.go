// SPDX-License-Identifier: Apache-2.0

package actuate

import (
	"errors"
	"slices"
)

// HandOver moves the changes in force that are wanted into the journal of what is kept
// until a user undoes it, and returns their ids there. A change that cannot
// be taken back from outside stays where it is. Call it after [Actuator.Stop].
//
// Each change stands in one of the two journals at any time, or in both: then
// the next controller takes it back.
func (a *Actuator) HandOver(kept *Kept, wanted func(id string) bool) (ids []string, err error) {
	open, err := newUndos(a.options.Kinds.Undos).openChanges(a.options.Journal.file.Name())
	if err != nil {
		return nil, err
	}
	var errs []error
	for _, id := range slices.Backward(a.Applied()) {
		if !wanted(id) {
			continue
		}
		i := slices.IndexFunc(open, func(r record) bool { return r.Change == id })
		if i < 0 || !open[i].any(func(u About) bool { return u.Keeps }) {
			continue
		}
		newID, err := a.handOver(kept, open[i])
		if err != nil {
			errs = append(errs, err)
			continue
		}
		if newID != "" {
			ids = append(ids, newID)
		}
	}
	return ids, errors.Join(errs...)
}

// handOver moves one change; no id if it is not in force any more.
func (a *Actuator) handOver(kept *Kept, r record) (id string, err error) {
	change := a.force.find(r.Change)
	if change == nil {
		return "", nil
	}
	change.process.Lock()
	defer change.process.Unlock()
	if a.force.find(r.Change) != change || !change.process.Alive() {
		return "", nil
	}
	old := r.Change
	r.Change = kept.NextID()
	if err := kept.append(r); err != nil {
		return "", err
	}
	return r.Change, a.force.drop(old, "kept")
}
