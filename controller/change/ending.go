// SPDX-License-Identifier: Apache-2.0

package change

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/attune-hpc/attune/controller/actuate"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// Restore undoes what controllers that died left behind.
func (c *Changes) Restore() {
	restored, err := c.kinds.Restore(c.options.StateDir)
	if err != nil {
		c.options.Log.Warn("restore after an earlier controller", "error", err)
	}
	for _, r := range restored {
		c.options.Log.Warn("change of an earlier controller", "undone", r.Err == nil, "change", r.Change, "knob", r.Knob, "pid", r.PID, "error", r.Err)
	}
}

// Hold leaves the changes that are proven good in force for the next controller, until a
// time since boot, undoes the others, and lets nothing more come into force. It returns
// the number of those that stay, and why others do that could not be undone.
func (c *Changes) Hold(ctx context.Context, until time.Duration) (int, error) {
	c.actuator.Stop()
	held, err := actuate.Hold(ctx, c.actuator, c.leases.proven(time.Now()), until, c.logUndone)
	c.options.Log.Info("left to the next controller", "changes", held)
	return len(held), err
}

// Keep makes the changes in force the user's own, who undoes them by hand. Stop
// undoes what is left, as what is to be undone anyway: it has failed, was rejected, or others
// have changed it. It returns the ids to undo them by.
func (c *Changes) Keep(kept *actuate.Kept) ([]string, error) {
	c.actuator.Stop()
	return c.actuator.HandOver(kept, func(id string) bool { return !c.leases.owes(id) })
}

// KeepOnly is Keep for some of the changes; the others are undone, or left to Stop where
// that is not possible just then.
func (c *Changes) KeepOnly(ctx context.Context, kept *actuate.Kept, changes []string) ([]string, error) {
	c.actuator.Stop()
	wanted := func(id string) bool { return slices.Contains(changes, id) && !c.leases.owes(id) }
	unwanted := slices.DeleteFunc(c.actuator.Applied(), wanted)
	for result := range actuate.UndoEach(ctx, c.actuator, unwanted) {
		c.logUndone(result)
	}
	return c.actuator.HandOver(kept, wanted)
}

// UndoAll takes back what is in force, the latest first in each process, and lets nothing
// more come into force. The error says what stays in force, and why.
func (c *Changes) UndoAll(ctx context.Context) error {
	c.actuator.Stop()
	var errs []error
	for result := range actuate.UndoEach(ctx, c.actuator, c.actuator.Applied()) {
		c.logUndone(result)
		errs = append(errs, actuate.Left(c.actuator, result))
	}
	return errors.Join(errs...)
}

// logUndone says how it came out that a change was undone because the session ends here.
func (c *Changes) logUndone(result *attunev1.ActionResult) {
	c.options.Log.Info("undone at the end", "change", result.GetChangeId(), "outcome", result.GetOutcome(), "reason", result.GetReason())
}
