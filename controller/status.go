// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"time"

	"github.com/attune-hpc/attune/internal/beat"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// statusPeriod is how often the controller accounts for itself.
const statusPeriod = time.Second

// statusLoop accounts for the controller, and undoes what the Analyzer no
// longer stands for.
func (d *desk) statusLoop(ctx context.Context) error {
	beat.Tick(ctx, statusPeriod, func(now time.Time) {
		d.sendStatus()
		if waiting := d.admission.Refresh(); waiting > 0 {
			d.log.Debug("libraries that were loaded again are patched", "processes", waiting)
		}
		d.wanted.GiveUp(now, d.config.Lease)
		d.changes.Look(now)
	})
	return nil
}

func (d *desk) sendStatus() {
	status, err := d.meter.Status()
	if err != nil {
		d.log.Debug("own usage", "error", err)
	}
	d.losses.Tell(status)
	d.answer(&attunev1.ManageRequest{Message: &attunev1.ManageRequest_Status{Status: status}})
}
