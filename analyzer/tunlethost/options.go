// SPDX-License-Identifier: Apache-2.0

package tunlethost

import (
	"cmp"
	"log/slog"
	"time"

	"github.com/attune-hpc/attune/internal/objfile"
)

// stable is how long a tunlet must have run for its failures to be forgotten.
const stable = time.Minute

// startTimeout bounds a start. It takes 0.1 s of CPU time, but it competes with an
// application that may fill every core many times over: with eight runnable tasks
// on two cores it took more than 2 s.
const startTimeout = 20 * time.Second

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
	// Pool has the processes that tunlets of several hosts share; nil: the host has
	// its own.
	Pool *Pool
	// User is whose session the host is for: they share the pool's places.
	User string
	// Digests remembers the tunlets' checksums; nil: one of the host's own.
	Digests      *objfile.Digests
	startTimeout time.Duration // bounds a start; 0: startTimeout
	// maxFailures is how often a tunlet may fail before it is put into
	// quarantine; 0: 4.
	maxFailures int
	// pause is the pause before the first restart, doubled at each further
	// one up to 32 times; 0: 100 ms.
	pause time.Duration
	// linger is how long a tunlet that had to be started to be asked what it is
	// stays, in case it is of use soon; 0: 10 s.
	linger time.Duration
	// Log takes what the host and the tunlets say; nil: nothing is logged.
	Log *slog.Logger
}

// withDefaults returns o with zero values replaced.
func (o Options) withDefaults() Options {
	o.startTimeout = cmp.Or(o.startTimeout, startTimeout)
	o.maxFailures = cmp.Or(o.maxFailures, 4)
	o.pause = cmp.Or(o.pause, 100*time.Millisecond)
	o.linger = cmp.Or(o.linger, 10*time.Second)
	o.Limits = o.Limits.withDefaults()
	if o.Digests == nil {
		o.Digests = objfile.NewDigests("")
	}
	o.Log = cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	return o
}
