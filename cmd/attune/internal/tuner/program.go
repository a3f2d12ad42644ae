// SPDX-License-Identifier: Apache-2.0

package tuner

import (
	"log/slog"
	"os"
	"slices"
	"strings"

	"github.com/attune-hpc/attune/analyzer/report"
	"github.com/attune-hpc/attune/internal/launch"
	"github.com/attune-hpc/attune/internal/objfile"
)

// preloadable takes LD_PRELOAD out of what is to be set if the program's
// loader would complain about a 64-bit glibc library or break on it. One that
// merely ignores it keeps it, for the programs that it starts.
func preloadable(args, env, set []string, log *slog.Logger) []string {
	program := inspect(args, env)
	switch program.Final().Kind {
	case objfile.KindELF32, objfile.KindOtherMachine, objfile.KindDynamicMusl, objfile.KindDynamicOther:
	default:
		return set
	}
	log.Warn("the program is only watched from outside", "reason", program.PreloadRefusal())
	var rest []string
	for _, line := range set {
		if !strings.HasPrefix(line, "LD_PRELOAD=") {
			rest = append(rest, line)
		}
	}
	return rest
}

// inspect looks at the file that will probably be executed.
func inspect(args, env []string) objfile.Inspection {
	var first objfile.Inspection
	for i, path := range launch.Candidates(args[0], env) {
		found := objfile.Inspect(path)
		if found.Runnable() == nil {
			return found
		}
		if i == 0 {
			first = found
		}
	}
	return first
}

// addProgram puts the program itself into a report that lacks it: it may have
// ended before anybody could look at it.
func (s *Tuner) addProgram(r *report.Report, exit launch.Exit) {
	if slices.ContainsFunc(r.Processes, func(p report.Process) bool { return p.PID == s.PID }) {
		return
	}
	program := inspect(s.Args, s.env)
	reason := program.PreloadRefusal()
	if reason == "" {
		reason = report.ShortLived
	}
	end := ReportExit(exit)
	r.Processes = append(r.Processes, report.Process{
		PID: s.PID, ParentPID: os.Getpid(), Exe: program.Path, Exit: &end, EndedSeconds: &r.WallSeconds,
		Mechanisms: []string{}, NotInstrumented: reason,
	})
}

// ReportExit is a program's end in the report.
func ReportExit(e launch.Exit) report.Exit {
	if e.Signal != 0 {
		return report.Exit{Signal: report.SignalName(e.Signal)}
	}
	return report.Exit{Code: &e.Code}
}
