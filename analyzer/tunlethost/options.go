// SPDX-License-Identifier: Apache-2.0

package tunlethost

import (
	"log/slog"
	"time"

	"github.com/attune-hpc/attune/internal/objfile"
)

// Options configures a Host. Zero values mean the defaults given.
type Options struct {
	// Dirs are the directories with tunlets, the first one wins.
	Dirs []string
	// Names are the tunlets to start; empty: all that are found.
	Names []string
	// Config is each tunlet's configuration by its name.
	Config map[string]map[string]string
	// Limits are those of each tunlet.
	Limits Limits
	// TempDir is where sockets are put, each in a private directory; empty:
	// the system's.
	TempDir string
	// DescriptionDir keeps what tunlets say of themselves, so that those that
	// sleep need not be started to be asked; empty: they are asked each time. It
	// must belong to the user, and nobody else may write to it.
	DescriptionDir string
	// Digests remembers the tunlets' checksums; nil: one of the host's own.
	Digests *objfile.Digests
	// StartTimeout bounds a start; 0: 5 s. A start takes 0.1 s of CPU time, but
	// it competes with an application that may fill every core several times
	// over: with eight runnable tasks on two cores it took more than 2 s.
	StartTimeout time.Duration
	// MaxFailures is how often a tunlet may fail before it is put into
	// quarantine; 0: 4.
	MaxFailures int
	// Pause is the pause before the first restart, doubled at each further
	// one up to 32 times; 0: 100 ms.
	Pause time.Duration
	// Linger is how long a tunlet that had to be started to be asked what it is
	// stays, in case it is of use soon; 0: 10 s.
	Linger time.Duration
	// Stable is how long a tunlet must have run for its failures to be
	// forgotten; 0: one minute.
	Stable time.Duration
	// Log takes what the host and the tunlets say; nil: nothing is logged.
	Log *slog.Logger
}

// withDefaults returns o with zero values replaced.
func (o Options) withDefaults() Options {
	if o.StartTimeout == 0 {
		o.StartTimeout = 5 * time.Second
	}
	if o.MaxFailures == 0 {
		o.MaxFailures = 4
	}
	if o.Pause == 0 {
		o.Pause = 100 * time.Millisecond
	}
	if o.Linger == 0 {
		o.Linger = 10 * time.Second
	}
	if o.Stable == 0 {
		o.Stable = time.Minute
	}
	o.Limits = o.Limits.withDefaults()
	if o.Digests == nil {
		o.Digests = objfile.NewDigests(objfile.DigestsOptions{})
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return o
}
