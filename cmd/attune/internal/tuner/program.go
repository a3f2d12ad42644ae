// SPDX-License-Identifier: Apache-2.0

package tuner

import (
	"context"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/attune-hpc/attune/internal/account"
	"github.com/attune-hpc/attune/internal/launch"
	"github.com/attune-hpc/attune/internal/objfile"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
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

// recordedExit is how the program has ended, at a time that [time.Now] told, and what it was
// in case that it ended before anybody could look at it.
func (s *Tuner) recordedExit(ctx context.Context, exit launch.Exit, at time.Time) *attunev1.RecordedExit {
	start := s.Joined.Analyzer.Session().Start()
	ended := start.Add(at.Sub(start)).UnixNano() // by the session's clock, whoever has set the time of day
	taken := s.endAccount(ctx, exit)
	program := inspect(s.Args, s.env)
	code, signal := ExitOf(exit)
	return &attunev1.RecordedExit{
		Code: code, Signal: signal, EndedUnixNano: ended, ProgramCpuNanos: exit.Rusage.Utime.Nano() + exit.Rusage.Stime.Nano(), Account: taken,
		Unseen: []*attunev1.RecordedUnseen{{
			Pid: int32(s.PID), ParentPid: int32(os.Getpid()), Executable: program.Path, Reason: program.PreloadRefusal(),
			Code: code, Signal: signal,
		}},
	}
}

// ExitOf is a program's end in a frame: its code, or the signal that killed it.
func ExitOf(e launch.Exit) (code *int32, signal string) {
	if e.Signal != 0 {
		return nil, account.SignalName(e.Signal)
	}
	n := int32(e.Code)
	return &n, ""
}
