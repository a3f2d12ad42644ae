// SPDX-License-Identifier: Apache-2.0

package change

import (
	"cmp"
	"context"
	"time"

	"github.com/attune-hpc/attune/controller/actuate"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// Look has changes undone that the Analyzer no longer stands for, and gives up those that
// others have overridden. It waits for no process, nor does an undo in one for another. It is
// to be called every second, which is how it notices that the controller stood still.
func (c *Changes) Look(now time.Time) {
	c.leases.sitOut(now)
	if ended := c.leases.expired(now, c.actuator.Applied); len(ended) > 0 {
		overridden := c.leases.overridden(ended)
		c.options.Go(func() { c.undoEnded(ended, overridden) })
	}
	for _, overridden := range c.actuator.Overridden() {
		if c.leases.yield(overridden.ID, overridden.Reason, now) {
			c.options.Go(func() {
				undone := c.actuator.Undo(context.WithoutCancel(c.options.Context), overridden.ID)
				c.answerAll("", actuate.Yielded(c.actuator, overridden, undone))
			})
		}
	}
	if now.Sub(c.opened) < TakeOverTime {
		c.TakeOver()
	}
}

// undoEnded takes changes back whose lease has ended, and tells the Analyzer, which may be there
// again. Those of which somebody else has changed something are given up for that.
func (c *Changes) undoEnded(ended []string, overridden map[string]string) {
	for result := range actuate.UndoEach(context.WithoutCancel(c.options.Context), c.actuator, ended) {
		id := result.GetChangeId()
		c.options.Log.Warn("change undone after its lease", "change", id, "outcome", result.GetOutcome(), "reason", result.GetReason())
		if reason := overridden[id]; reason != "" {
			c.answerAll("", actuate.Yielded(c.actuator, actuate.Overridden{ID: id, Reason: reason}, result))
		} else if actuate.Ended(c.actuator, result) {
			result.Reason = cmp.Or(result.GetReason(), "its lease ended before the Analyzer renewed it")
			c.answerAll("", []*attunev1.ActionResult{result})
		}
	}
}
