// SPDX-License-Identifier: Apache-2.0

package actuate

import (
	"slices"

	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// Overridden looks for changes in force whose value somebody else has changed
// since: the owner of the process by other means, an administrator, or the
// program itself. Their value stays: the change is not in force any more, and
// nothing will put the original value back. It reads only, without stopping
// anything, and waits for nobody. What is done to functions, and settings that cannot
// be read back, are not looked at, nor is a process in which something is being changed.
func (a *Actuator) Overridden() []*attunev1.ActionResult {
	var results []*attunev1.ActionResult
	for _, id := range a.Applied() {
		if result := a.overridden(id); result != nil {
			results = append(results, result)
		}
	}
	return results
}

// overridden drops one change that is not what it was made; nil: it is.
func (a *Actuator) overridden(id string) *attunev1.ActionResult {
	change := a.force.find(id)
	if change == nil || !change.plan.readable() {
		return nil
	}
	result := a.dropOverridden(id, change)
	if result != nil {
		change.tending.end()
	}
	return result
}

// dropOverridden is overridden with the lock of the process, if nobody else has it.
func (a *Actuator) dropOverridden(id string, change *appliedChange) *attunev1.ActionResult {
	if !change.process.TryLock() {
		return nil
	}
	defer change.process.Unlock()
	if a.force.find(id) != change || !change.process.Alive() {
		return nil
	}
	reason, err := a.force.otherValue(id, change)
	if err != nil {
		a.log.Debug("read a change back", "change", id, "error", err) // it may be ending
	}
	if err != nil || reason == "" {
		return nil
	}
	if err := a.force.drop(id, "overridden"); err != nil {
		a.log.Warn("change that somebody else changed", "change", id, "error", err)
	}
	a.log.Info("changed by hand", "change", id, "knob", change.knob, "pid", change.process.PID(), "reason", reason)
	return &attunev1.ActionResult{ChangeId: id, Outcome: attunev1.Outcome_OUTCOME_OVERRIDDEN, Reason: reason}
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
			if reason, err := values.OtherValue(Changed{change.process, f, id}); err != nil || reason != "" {
				return reason, err
			}
		}
	}
	return "", nil
}
