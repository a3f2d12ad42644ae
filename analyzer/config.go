// SPDX-License-Identifier: Apache-2.0

package analyzer

import (
	"io"
	"log/slog"
	"time"

	"github.com/attune-hpc/attune/analyzer/core"
	"github.com/attune-hpc/attune/analyzer/tunlethost"
	"github.com/attune-hpc/attune/internal/objective"
	"github.com/attune-hpc/attune/internal/objfile"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// Config configures an Analyzer.
type Config struct {
	// Mode is observe, advise or tune.
	Mode string
	// Command is the application's command line, for tunlets and the report.
	Command []string
	// JobID names the session.
	JobID string
	// TunletDirs are the directories in which tunlets are looked for.
	TunletDirs []string
	// Tunlets are the names of the tunlets to start; empty: all.
	Tunlets []string
	// NoTunlets starts none.
	NoTunlets bool
	// TunletOptions is the configuration of each tunlet by its name.
	TunletOptions map[string]map[string]string
	// Probes are measure points, as pointtext reads them, whose hits are shown
	// among the report's points.
	Probes []string
	// Objective is what the owner wants to be better: it outranks the tunlets' own. Its
	// values come as Measured, but for those of a Point, which the Analyzer asks for. nil: there is none.
	Objective *objective.Spec
	// NodesMeasure is the text of an Objective that the controllers find in files of their
	// processes; empty: nobody, or whoever calls Measured, does.
	NodesMeasure string
	// TunletLimits are those of each tunlet's process.
	TunletLimits tunlethost.Limits
	// TunletPool has the processes that tunlets of several sessions share; nil: one of
	// its own.
	TunletPool *tunlethost.Pool
	// User is whose session it is: users share the pool's places.
	User string
	// TempDir is a private directory for the tunlets' sockets; empty: private
	// directories are made in the system's.
	TempDir string
	// Digests remembers checksums of tunlets; nil: one of its own.
	Digests *objfile.Digests
	// DescriptionDir keeps what tunlets say of themselves; see
	// tunlethost.Options.
	DescriptionDir string
	// Knowledge is that of earlier sessions, and takes what this one learns; nil:
	// there is none.
	Knowledge Knowledge
	// Keep leaves changes that were judged good in force at the end.
	Keep bool
	// Apart says that other Analyzers tune other parts of the same application; see
	// core.Config.
	Apart bool
	// tick is the period of ticks, samples and aggregates; 0: 50 ms.
	tick time.Duration
	// Lease, ProvenLease, Grace and Inherit are the session's; see session.Config.
	Lease, ProvenLease, Grace time.Duration
	Inherit                   []*attunev1.KeptChange
	// OwnCost returns the CPU time of this process, where the controller is in it; nil:
	// the controllers say what they take.
	OwnCost func() time.Duration
	// Changed is called when the summary may have changed; it must not wait. nil:
	// nobody is interested.
	Changed func()
	// ChangePrefix begins the ids of changes; see core.Config.IDPrefix.
	ChangePrefix string
	// Timeline takes JSON lines as things happen; nil: nobody.
	Timeline io.Writer
	// Record takes a recording of the session (tunlets/sdk/recording); nil:
	// nobody.
	Record io.Writer
	// Audit takes those of Timeline's lines that say what was decided; nil: nobody.
	Audit io.Writer
	// Log takes what has no better place; nil: nothing is logged.
	Log *slog.Logger
	// Version is Attune's own version, for the report.
	Version string
}

// core returns the rules of the decision.
func (c Config) core(mode core.Mode) core.Config {
	out := core.Config{Mode: mode, Keep: c.Keep, Apart: c.Apart, IDPrefix: c.ChangePrefix}
	if c.Objective != nil {
		out.Objective = c.Objective.Objective()
	}
	return out
}
