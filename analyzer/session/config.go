// SPDX-License-Identifier: Apache-2.0

package session

import (
	"log/slog"
	"time"

	"github.com/attune-hpc/attune/analyzer/core"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// Config configures a session.
type Config struct {
	// ID names the session.
	ID string
	// Command is the application's command line; empty: that of the first
	// process.
	Command []string
	// Tick is the period of ticks, samples and aggregates; 0: 50 ms.
	Tick time.Duration
	// Lease is how long a change lives without a renewal; 0: 5 s.
	Lease time.Duration
	// callTimeout bounds each call to a tunlet, which holds up nobody else
	// meanwhile; 0: 5 s, which a tunlet on a crowded node keeps.
	callTimeout time.Duration
	// Grace is how long a controller may be out of reach before its processes
	// count as ended; 0: not at all.
	Grace time.Duration
	// Inherit are changes that an earlier session of the same execution kept:
	// this one goes on with them.
	Inherit []*attunev1.KeptChange
	// Known returns what earlier runs of an application have learnt, by the
	// SHA-256 of its executable. It may wait for a while; nil: nothing is known.
	Known func(application string) []core.Known
	// Core holds the rules of the decision, the mode among them.
	Core core.Config
	// Sinks take all that the session sees and does, each frame in this order.
	Sinks []Sink
	// Version is Attune's own, for who reads what was recorded.
	Version string
	// now tells the time; nil: time.Now.
	now func() time.Time
	// ticks makes time pass, for tests; nil: a ticker of period Tick.
	ticks <-chan time.Time
	// Log takes what has no better place; nil: nothing is logged.
	Log *slog.Logger
}

// withDefaults returns c with zero values replaced.
func (c Config) withDefaults() Config {
	if c.Tick == 0 {
		c.Tick = 50 * time.Millisecond
	}
	if c.Lease == 0 {
		c.Lease = 5 * time.Second
	}
	if c.callTimeout == 0 {
		c.callTimeout = 5 * time.Second
	}
	if c.now == nil {
		c.now = time.Now
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	return c
}
