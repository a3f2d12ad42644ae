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
	var errs []error
	for _, id := range slices.Backward(a.Applied()) {
		if !wanted(id) {
			continue
		}
		newID, err := a.handOver(kept, id)
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

// handOver moves one change; no id if it is not in force any more, or cannot be taken back from
// outside.
func (a *Actuator) handOver(kept *Kept, id string) (newID string, err error) {
	change := a.force.find(id)
	if change == nil {
		return "", nil
	}
	change.process.Lock()
	defer change.process.Unlock()
	if a.force.find(id) != change || !change.process.Alive() {
		return "", nil
	}
	p := *change.plan
	if !p.Undo.any(Changed{Process: change.process, others: a.force, id: id}, func(u About) bool { return u.Keeps }) {
		return "", nil
	}
	p.undone = change.undone
	r := begun(kept.NextID(), change.knob, change.process.Identity(), &p)
	r.Time = change.since.UTC()
	if err := kept.append(r); err != nil {
		return "", err
	}
	return r.Change, a.force.drop(id, "kept")
}
