// SPDX-License-Identifier: Apache-2.0

package readers

import (
	"cmp"
	"errors"
	"log/slog"
	"time"
)

// ErrRefused says that what belongs to a user is not read at present, because reading
// it did not end in time.
var ErrRefused = errors.New("what belongs to this user cannot be read in time; it is tried again later")

// errClosed says that the pool is closed.
var errClosed = errors.New("readers are closed")

// Argument is the only one of a program that is to call [Serve]; see [ServeIfAsked].
const Argument = "read-for-attune"

// Defaults of Options.
const (
	// DefaultPatience is some thousand times what an operation takes.
	DefaultPatience = 2 * time.Second
	// DefaultSlowPatience is enough for a program of some gigabytes.
	DefaultSlowPatience = time.Minute
	// DefaultPause keeps a user who has helpers hang over and over from more than a
	// few per cent of one helper's time.
	DefaultPause = 30 * time.Second
)

const (
	// perUser is how many helpers read what belongs to one user, at most: one slow
	// operation does not hold up the others. It bounds those that hang, too.
	perUser = 2
	// keptIdle is how many helpers wait for the next question.
	keptIdle = 2
)

// Options of a Pool.
type Options struct {
	// Command runs [Serve]; nil: this process' own program with [Argument].
	Command []string
	// Patience is how long a helper has for an operation, SlowPatience for a slow
	// one; 0: the defaults. While it runs or waits for a processor then, it has until it
	// has taken as much CPU time, a minute at most. SlowPatience is also the CPU time
	// after which a helper is not asked any more, and must not be more than its default:
	// see cpuLimit.
	Patience, SlowPatience time.Duration
	// Pause is how long a user is refused, from when the last helper that hung has
	// ended; 0: [DefaultPause].
	Pause time.Duration
	// Own says that what is read is of this process' user, whose helpers are as well where nobody could
	// not read it, for want of [HaveRights].
	Own bool
	// Log may be nil.
	Log *slog.Logger

	// Of tests: mostStarved bounds how long a helper may wait for a processor; 0: a minute.
	mostStarved time.Duration
}

// withDefaults completes the options.
func (o Options) withDefaults() Options {
	if o.Command == nil {
		o.Command = []string{"/proc/self/exe", Argument}
	}
	o.mostStarved = cmp.Or(o.mostStarved, time.Minute)
	if o.Patience <= 0 {
		o.Patience = DefaultPatience
	}
	if o.SlowPatience <= 0 {
		o.SlowPatience = DefaultSlowPatience
	}
	if o.Pause <= 0 {
		o.Pause = DefaultPause
	}
	o.Log = cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	return o
}
