// SPDX-License-Identifier: Apache-2.0

package track

import (
	"cmp"
	"errors"
	"log/slog"
	"time"

	"github.com/attune-hpc/attune/internal/objfile"
	"github.com/attune-hpc/attune/internal/readers"
)

// Errors of a Tracker's methods.
var (
	// ErrStopped says that Run has returned.
	ErrStopped = errors.New("tracker has stopped")
	// ErrForeign says that a process does not belong to the job.
	ErrForeign = errors.New("process does not belong to the job")
	// ErrOff says that a process is to be left alone.
	ErrOff = errors.New("ATTUNE=off is in its environment: it is left alone")
	// ErrTooMany says that the job has more processes than are followed.
	ErrTooMany = errors.New("too many processes")
)

// Defaults of Options.
const (
	// DefaultPollInterval is how often /proc is scanned without a source.
	DefaultPollInterval = 100 * time.Millisecond
	// DefaultResyncInterval is how often it is scanned beside a source, for
	// what the source may have lost. A scan takes milliseconds of CPU time.
	DefaultResyncInterval = 5 * time.Second
	// DefaultMaxProcesses bounds the processes followed at a time.
	DefaultMaxProcesses = 16384
)

// Options of a Tracker.
type Options struct {
	// JobID is the value of ATTUNE_JOB in the job; "": nothing is found by
	// environment.
	JobID string
	// Handler is told about processes. Needed.
	Handler Handler
	// Source of events; nil: /proc is polled. Run closes it.
	Source Source
	// Digests remembers SHA-256 sums of executables; nil: a cache of its own.
	Digests *objfile.Digests
	// Readers read what belongs to processes; nil: this process does.
	Readers *readers.Pool
	// PollInterval is the interval of scans of /proc; 0: [DefaultPollInterval],
	// or [DefaultResyncInterval] with a source.
	PollInterval time.Duration
	// MaxProcesses bounds the processes followed at a time; 0:
	// [DefaultMaxProcesses].
	MaxProcesses int
	// Log may be nil.
	Log *slog.Logger
}

// withDefaults checks the options and completes them.
func (o Options) withDefaults() (Options, error) {
	if o.Handler == nil {
		return o, errors.New("tracker needs a handler")
	}
	o.Log = cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	if o.Digests == nil {
		o.Digests = objfile.NewDigests("")
	}
	if o.MaxProcesses <= 0 {
		o.MaxProcesses = DefaultMaxProcesses
	}
	if o.PollInterval <= 0 && o.Source == nil {
		o.PollInterval = DefaultPollInterval
	}
	if o.PollInterval <= 0 {
		o.PollInterval = DefaultResyncInterval
	}
	return o, nil
}
