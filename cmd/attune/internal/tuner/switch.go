// SPDX-License-Identifier: Apache-2.0

package tuner

import (
	"context"

	"github.com/attune-hpc/attune/cmd/attune/internal/permission"
	"github.com/attune-hpc/attune/internal/offswitch"
)

// FollowSwitch gives everything back as soon as attune is switched off, until the
// session ends. The program runs on; gone is called then.
func (s *Tuner) FollowSwitch(gone func()) {
	if s.Joined.Controller == nil {
		return
	}
	look := offswitch.Any(permission.Switches()...)
	s.Work.Go(func() {
		ctx, stop := context.WithCancel(s.Ctx)
		defer stop()
		offswitch.Watch(ctx, offswitch.Interval, false, look, func(reason string, _ bool) {
			stop()
			s.Log.Warn("switched off: everything is given back", "reason", reason)
			gone()
		})
	})
}

// GiveBack ends watching and tuning of a program that runs on.
func (s *Tuner) GiveBack() {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(s.Ctx), EndTimeout)
	defer cancel()
	s.Begun.Wait()
	s.Joined.Settle(ctx)
	s.Joined.StopController(ctx)
}
