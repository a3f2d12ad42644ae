// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"time"

	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// statusPeriod is how often the controller accounts for itself.
const statusPeriod = time.Second

// statusLoop accounts for the controller, and undoes what the Analyzer no
// longer stands for.
func (c *Controller) statusLoop(ctx context.Context) error {
	ticker := time.NewTicker(statusPeriod)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case now := <-ticker.C:
			c.sendStatus()
			c.patchAgain()
			if c.points.Abandoned(now, c.config.Lease) {
				c.points.DropOutlived()
			}
			c.changes.Look(now)
		}
	}
}

// patchAgain finds processes that have unloaded or loaded libraries whose
// functions are patched. What waits for a safe point of theirs waits beside.
func (c *Controller) patchAgain() {
	for _, t := range c.members.List() {
		patching := c.patching.Of(t)
		if t.Memory() == nil || !patching.CompareAndSwap(false, true) {
			continue
		}
		if !t.Sites().Stale() {
			patching.Store(false)
			continue
		}
		c.work.Go(func() {
			defer patching.Store(false)
			ctx, cancel := context.WithTimeout(c.ctx, statusPeriod)
			defer cancel()
			if err := t.Sites().Refresh(ctx); err != nil {
				c.log.Debug("patches of a library that was loaded again", "pid", t.PID(), "error", err)
			}
			c.placer.Refresh(t.Handle())
		})
	}
}

func (c *Controller) sendStatus() {
	status, err := c.meter.Status()
	if err != nil {
		c.log.Debug("own usage", "error", err)
	}
	c.losses.Tell(status)
	c.answer(&attunev1.ManageRequest{Message: &attunev1.ManageRequest_Status{Status: status}})
}
