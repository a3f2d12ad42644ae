// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"time"

	"github.com/attune-hpc/attune/controller/actuate/hidden"
	"github.com/attune-hpc/attune/controller/bpf"
	"github.com/attune-hpc/attune/controller/policy"
	"github.com/attune-hpc/attune/controller/ring"
	"github.com/attune-hpc/attune/internal/objfile"
)

// Config says what a controller serves and where its things are.
type Config struct {
	// AnalyzerAddress as gRPC writes it, e.g. "unix:/run/user/1000/.../a.sock";
	// Unix sockets only, whose peers the kernel vouches for.
	AnalyzerAddress string
	// GatePath is the Unix socket of the start gate; its folder belongs to
	// this user alone.
	GatePath string
	// LibraryPath is the installed DMLib; empty: nothing is preloaded.
	LibraryPath string
	// StateDir holds the undo journals of this user's controllers.
	StateDir string
	// JobID names the job that is followed.
	JobID string
	// UseBPF allows uprobes and kernel process events where the user may
	// have them.
	UseBPF bool
	// Uprobes tunes the kernel's probes; the zero value is good.
	Uprobes bpf.UprobesOptions
	// Geometry of the memory shared with each process; zero: the default.
	Geometry ring.Geometry
	// Hidden finds variables without symbol; nil: named settings that need one
	// are refused, or their old value stays unknown.
	Hidden *hidden.Prober
	// Lease is how long a change outlives a silent Analyzer. 0: 10 seconds.
	Lease time.Duration
	// Policy says which tuning actions are allowed; nil: a user's own processes
	// may be changed, and by root all.
	Policy *policy.Policy
	// Budget is the share of a process' CPU time that its measure points may
	// take; 0: [DefaultBudget]. Beyond it less of them is delivered. 1: all of
	// it, there is no limit.
	Budget float64
	// Digests remembers checksums of programs; nil: one of its own.
	Digests *objfile.Digests
	// Version of Attune, for the Analyzer.
	Version string
	// Log may be nil.
	Log *slog.Logger
}

// Validate reports what is missing or contradictory.
func (c Config) Validate() error {
	switch {
	case c.AnalyzerAddress == "":
		return errors.New("controller: no analyzer address")
	case !strings.HasPrefix(c.AnalyzerAddress, "unix:"):
		return fmt.Errorf("controller: analyzer address %q must be a Unix socket, unix:PATH: "+
			"without certificates nobody is talked to on other machines", c.AnalyzerAddress)
	case !filepath.IsAbs(c.GatePath):
		return errors.New("controller: gate path must be absolute, programs change their directory")
	case c.LibraryPath != "" && !filepath.IsAbs(c.LibraryPath):
		return errors.New("controller: library path must be absolute")
	case c.StateDir == "":
		return errors.New("controller: no state directory")
	case c.JobID == "":
		return errors.New("controller: no job id")
	case c.Budget < 0 || c.Budget > 1:
		return errors.New("controller: the budget of measure points is a share of the CPU time, 0 to 1")
	case c.Lease < 0:
		return errors.New("controller: negative lease")
	}
	return nil
}

func (c Config) withDefaults() Config {
	if c.Lease == 0 {
		c.Lease = 10 * time.Second
	}
	if c.Budget == 0 {
		c.Budget = DefaultBudget
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	return c
}
