// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"

	"github.com/attune-hpc/attune/cmd/attune/internal/permission"
	"github.com/attune-hpc/attune/internal/offswitch"
)

// followSwitch gives everything back as soon as attune is switched off, until the
// session ends. The program runs on; gone is called then.
func (s *session) followSwitch(gone func()) {
	if s.joined.Controller == nil {
		return
	}
	look := offswitch.Any(permission.Switches()...)
	s.work.Go(func() {
		ctx, stop := context.WithCancel(s.ctx)
		defer stop()
		offswitch.Watch(ctx, offswitch.Interval, false, look, func(reason string, _ bool) {
			stop()
			s.log.Warn("switched off: everything is given back", "reason", reason)
			gone()
		})
	})
}

// giveBack ends watching and tuning of a program that runs on.
func (s *session) giveBack() {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(s.ctx), endTimeout)
	defer cancel()
	s.begun.Wait()
	s.joined.Settle(ctx)
	s.joined.StopController(ctx)
}
