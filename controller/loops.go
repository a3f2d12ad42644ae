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
			if waiting := c.admission.Refresh(); waiting > 0 {
				c.log.Debug("libraries that were loaded again are patched", "processes", waiting)
			}
			if c.points.Abandoned(now, c.config.Lease) {
				c.points.DropOutlived()
			}
			c.changes.Look(now)
		}
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
