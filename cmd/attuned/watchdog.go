// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"

	"github.com/attune-hpc/attune/internal/turns"
)

// lookInterval is how often loops are looked at if no watchdog wants to know.
const lookInterval = 30 * time.Second

// watchdog tells systemd that attuned lives for as long as all of its essential loops turn,
// and logs which do not: without word from it systemd starts attuned anew (WatchdogSec).
func (a *service) watchdog(ctx context.Context) {
	every := lookInterval
	if limit, err := daemon.SdWatchdogEnabled(false); err == nil && limit > 0 {
		every = limit / 3 // one may come late
	}
	a.turns.Watch(ctx, every, func() { a.Notify(daemon.SdNotifyWatchdog) }, func(s turns.Standing) {
		a.log.Error("a loop stands", "loop", s.Name, "for", s.For, "restart", s.Essential)
	})
}
