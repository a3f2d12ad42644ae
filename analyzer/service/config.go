// SPDX-License-Identifier: Apache-2.0

package service

import (
	"cmp"
	"errors"
	"io"
	"log/slog"
	"time"

	"github.com/attune-hpc/attune/analyzer"
	"github.com/attune-hpc/attune/analyzer/tunlethost"
	"github.com/attune-hpc/attune/internal/metrics"
	"github.com/attune-hpc/attune/internal/objfile"
	"github.com/attune-hpc/attune/internal/registry"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// Config configures a Service. Zero values mean the defaults given.
type Config struct {
	// Record says who this Analyzer is and where controllers reach it.
	Record *attunev1.AnalyzerRecord
	// Registry is the site's; the caller closes it, after Run.
	Registry *registry.Client
	// Registrations are the site's own, by its configuration. Their ids begin
	// with SiteID.
	Registrations []*attunev1.Registration
	// ReportDir keeps the reports of sessions that have ended.
	ReportDir string
	// Reports bounds the number of those of sessions that changed something, and that of
	// the others; those that nobody has looked at for longest go first; 0: 1000.
	Reports int
	// TunletDirs are the directories in which tunlets are looked for.
	TunletDirs []string
	// TunletOptions are each tunlet's settings, under those of a registration.
	TunletOptions map[string]map[string]string
	// TunletLimits are those of each tunlet's process.
	TunletLimits tunlethost.Limits
	// Digests remembers checksums of tunlets; nil: one of its own.
	Digests *objfile.Digests
	// DescriptionDir keeps what tunlets say of themselves; see
	// tunlethost.Options.
	DescriptionDir string
	// TunletDelay is how old a session is when it gets its tunlets: most applications
	// that are found are not worth them; 0: 1 s.
	TunletDelay time.Duration
	// MaxSessions bounds the sessions; 0: 2000.
	MaxSessions int
	// MaxTunletProcesses bounds the processes of tunlets that do not come with
	// Attune, some 15 MB each, of which every session has its own; what is to be
	// started beyond that waits; 0: 32.
	MaxTunletProcesses int
	// maxRegistrations bounds those of one user; 0: 64.
	maxRegistrations int
	// Linger is how long a session without processes waits for more; 0: 10 s.
	Linger time.Duration
	// Grace is how long a controller may be out of reach; 0: 5 min.
	Grace time.Duration
	// Lease is how long changes that are on trial outlive a silent Analyzer; 0: 30 s.
	Lease time.Duration
	// ProvenLease is how long those that are proven good do, and so how long another
	// Analyzer has to take them over; 0: 5 min.
	ProvenLease time.Duration
	// Knowledge is what earlier sessions have learnt, for each user apart; nil: it
	// is not kept. The caller closes it, after Run.
	Knowledge analyzer.Knowledge
	// Audit gives a place for what is decided in a session, JSON lines; nil: it
	// is not audited.
	Audit func(session string) io.Writer
	// Metrics takes what is counted; nil: nobody asks.
	Metrics *metrics.Registry
	// Version of Attune, for reports.
	Version string
	// Log takes what has no better place; nil: nothing is logged.
	Log *slog.Logger
}

// Validate reports what is missing.
func (c Config) Validate() error {
	switch {
	case c.Record.GetId() == "":
		return errors.New("service: the Analyzer has no id")
	case c.Registry == nil:
		return errors.New("service: no registry")
	case c.ReportDir == "":
		return errors.New("service: no directory for reports")
	}
	return validateSite(c.Registrations)
}

// withDefaults returns c with zero values replaced.
func (c Config) withDefaults() Config {
	c.Reports = cmp.Or(c.Reports, 1000)
	c.TunletDelay = cmp.Or(c.TunletDelay, time.Second)
	c.MaxSessions = cmp.Or(c.MaxSessions, 2000)
	c.MaxTunletProcesses = cmp.Or(c.MaxTunletProcesses, 32)
	c.maxRegistrations = cmp.Or(c.maxRegistrations, 64)
	c.Linger = cmp.Or(c.Linger, 10*time.Second)
	c.Grace = cmp.Or(c.Grace, 5*time.Minute)
	c.Lease = cmp.Or(c.Lease, 30*time.Second)
	c.ProvenLease = cmp.Or(c.ProvenLease, 5*time.Minute)
	if c.Digests == nil {
		c.Digests = objfile.NewDigests("")
	}
	c.Log = cmp.Or(c.Log, slog.New(slog.DiscardHandler))
	return c
}
