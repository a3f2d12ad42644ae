// SPDX-License-Identifier: Apache-2.0

package actuate

import (
	"errors"
	"slices"

	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// Overridden is a change in force of which somebody else has changed a value since, and what.
type Overridden struct{ ID, Reason string }

// Overridden looks for changes in force whose value somebody else has changed since: the owner
// of the process by other means, an administrator, or the program itself. It reads only,
// without stopping anything, and waits for nobody. What is done to functions, and settings that
// cannot be read back, are not looked at, nor is a process in which something is being changed.
func (a *Actuator) Overridden() (all []Overridden) {
	for _, id := range a.Applied() {
		reason, err := a.force.overridden(id)
		if err != nil {
			a.log.Debug("read a change back", "change", id, "error", err) // it may be ending
		} else if reason != "" {
			all = append(all, Overridden{id, reason})
		}
	}
	return all
}

// overridden says what has another value than a change gave it; empty: nothing, or somebody has
// the lock of the process.
func (f *force) overridden(id string) (reason string, err error) {
	change := f.find(id)
	if change == nil || !change.plan.readable() || !change.process.TryLock() {
		return "", nil
	}
	defer change.process.Unlock()
	if f.find(id) != change || change.undone || change.gone || !change.process.Alive() {
		return "", nil
	}
	reason, err = f.otherValue(id, change)
	change.gone = errors.Is(err, ErrPlacesGone)
	return reason, err
}

// Yielded answers for a change that was given up because somebody else has changed a value of
// it, by what [Actuator.Undo] said: theirs stays, and what else the change has made is taken
// back. Nothing is said of one that was not in force any more, or stays so because it could not
// be taken back for the time being.
func Yielded(a *Actuator, to Overridden, undone *attunev1.ActionResult) []*attunev1.ActionResult {
	if !Ended(a, undone) {
		return nil
	}
	a.log.Info("changed by others", "change", to.ID, "reason", to.Reason)
	return []*attunev1.ActionResult{{ChangeId: to.ID, Outcome: attunev1.Outcome_OUTCOME_OVERRIDDEN, Reason: to.Reason}}
}

// readable reports whether the plan set values that stay as they are unless
// somebody sets others: variables, and what the operating system keeps.
func (p *Plan) readable() bool {
	return slices.ContainsFunc(p.Undo, func(part Undo) bool { _, ok := part.(readable); return ok })
}

// otherValue says what has another value than the change gave it; empty:
// nothing. The caller holds the process' lock.
func (f *force) otherValue(id string, change *appliedChange) (string, error) {
	for _, part := range change.plan.Undo {
		if values, ok := part.(readable); ok {
			if reason, err := values.OtherValue(Changed{Process: change.process, others: f, id: id}); err != nil || reason != "" {
				return reason, err
			}
		}
	}
	return "", nil
}
