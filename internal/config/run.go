// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"slices"
	"strings"

	"github.com/attune-hpc/attune/internal/exitcode"
	"github.com/attune-hpc/attune/internal/objective"
	"github.com/attune-hpc/attune/internal/pointtext"
)

// Modes of a run.
const (
	// Observe watches and reports.
	Observe = "observe"
	// Advise also says what it would change.
	Advise = "advise"
	// Tune changes, compares, and keeps or undoes.
	Tune = "tune"
)

// Modes lists the modes, the most cautious first.
func Modes() []string { return []string{Observe, Advise, Tune} }

// LogLevels lists the levels of the log, the most talkative first.
func LogLevels() []string { return []string{"debug", "info", "warn", "error"} }

// Run is the configuration of `attune run`. Default gives the values for what
// nobody set.
type Run struct {
	// Mode is one of Modes.
	Mode string
	// Tunlets are the names of those to use; empty: all that are found.
	Tunlets []string
	// TunletDirs are looked through before the usual directories.
	TunletDirs []string
	// TunletOptions are each tunlet's own settings by its name.
	TunletOptions map[string]map[string]string
	// OptionsOf names the tunlets of which the command line sets options: they must be there.
	OptionsOf []string
	// TunletMB and TunletCPU are what one tunlet's process may take: megabytes,
	// and percent of a core.
	TunletMB, TunletCPU float64
	// Probes are measure points; see [pointtext.Parse].
	Probes []string
	// Objective is what the owner wants to be better; see [objective.Parse]. Empty: nothing that Attune
	// was told.
	Objective string
	// Budget is the percentage of a process' CPU time that its measure points may
	// take.
	Budget float64
	// Report is the file for the JSON report; empty: none.
	Report string
	// HTML is the file for the report as a page; empty: none.
	HTML string
	// Timeline is the file for what happens, as JSON lines; empty: none.
	Timeline string
	// Record is the file for a recording of the run; empty: none.
	Record string
	// Quiet leaves out the text at the end.
	Quiet bool
	// Watch shows the run live on the terminal.
	Watch bool
	// NoBPF goes without BPF even where it is allowed.
	NoBPF bool
	// LogFile gets the log; empty: only warnings are kept, for the report.
	LogFile string
	// LogLevel is the lowest level in LogFile: debug, info, warn or error.
	LogLevel string
}

// Default is the configuration of a run where nothing was set.
func Default() Run { return Run{Mode: Tune, TunletMB: 128, TunletCPU: 80, Budget: 2, LogLevel: "info"} }

// Validate returns an *exitcode.Error with code Usage and a remedy if the run
// cannot be meant like that.
func (r Run) Validate() error {
	if !slices.Contains(Modes(), r.Mode) {
		return usage("use one of "+strings.Join(Modes(), ", "), "unknown mode %q", r.Mode)
	}
	if !slices.Contains(LogLevels(), r.LogLevel) {
		return usage("use debug, info, warn or error", "unknown log level %q", r.LogLevel)
	}
	for _, name := range r.Tunlets {
		if name == "" || strings.ContainsAny(name, "/ ") {
			return usage("`attune tunlet list` shows those there are", "%q is no tunlet's name", name)
		}
	}
	if err := ValidateTunletLimits(r.TunletMB, r.TunletCPU); err != nil {
		return err
	}
	for _, p := range r.Probes {
		if _, err := pointtext.Parse(p); err != nil {
			return usage("docs/reference/probes.md shows the forms", "%q: %w", p, err)
		}
	}
	if r.Objective != "" {
		if _, err := objective.Parse(r.Objective); err != nil {
			return usage("docs/reference/objective.md shows the forms", "objective %q: %w", r.Objective, err)
		}
	}
	if err := ValidateBudget(r.Budget); err != nil {
		return err
	}
	if r.Watch && r.Quiet {
		return usage("leave one of them out", "--watch and --quiet exclude each other")
	}
	return nil
}

func usage(remedy, format string, args ...any) error {
	return exitcode.UsageError(fmt.Errorf(format, args...), remedy)
}

// ValidateBudget returns an *exitcode.Error with code Usage if measure points could not take
// that share of a process' CPU time, in percent.
func ValidateBudget(percent float64) error {
	if !(percent > 0 && percent <= 100) { // not a number neither
		return usage("give a percentage above 0, up to 100", "a budget of %v %% for measure points", percent)
	}
	return nil
}

// ValidateTunletLimits returns an *exitcode.Error with code Usage if no tunlet
// could run within the limits.
func ValidateTunletLimits(mb, percent float64) error {
	const leastMB = 16 // of a tunlet that has nothing to do
	if !(mb >= leastMB && mb <= 1e6) {
		return usage("a tunlet takes some 15 MB when it does nothing", "tunlet-memory: %v is not 16 to 1000000 MB", mb)
	}
	if !(percent > 0 && percent <= 1e5) {
		return usage("write a percentage of one core, for example 80", "tunlet-cpu: %v is not above 0", percent)
	}
	return nil
}
