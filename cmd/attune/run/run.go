// SPDX-License-Identifier: Apache-2.0

package run

import (
	"context"
	"fmt"
	"os"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/attune-hpc/attune/cmd/attune/internal/cli"
	"github.com/attune-hpc/attune/cmd/attune/internal/permission"
	"github.com/attune-hpc/attune/cmd/attune/internal/runflags"
	"github.com/attune-hpc/attune/cmd/attune/internal/settings"
	"github.com/attune-hpc/attune/cmd/attune/internal/tuner"
	"github.com/attune-hpc/attune/controller/track"
	"github.com/attune-hpc/attune/internal/config"
	"github.com/attune-hpc/attune/internal/launch"
)

const runLong = `Run starts CMD unchanged and tunes it while it runs. Input, output, terminal,
signals, stop and continue, exit code and death by signal pass through as if
attune were not there. What CMD starts is followed too: put attune in front of
mpirun, not behind it.

A signal to attune alone is passed on to CMD each time that it comes. What CMD does
with it is up to CMD: attune ends when CMD has ended. A CMD that ignores SIGTERM is
ended by SIGKILL to CMD itself; SIGKILL to attune leaves CMD running. To end tuning
alone, use attune off.

At the end a short report goes to standard error: what was changed, what CMD and all
its processes took of what was asked of the batch system or of what the machine has,
and, where nothing was to change, what the time went into and what bounded it. --html
makes a page of it. What is wrong with the
command line or the settings is refused before CMD is started, with exit code
2; what goes wrong later never changes CMD or its exit code. Exit codes are
described in docs/reference/exit-codes.md.

Settings come from /etc/attune/attune.yaml, /etc/attune/attune.d/*.yaml, the
same below ~/.config/attune, environment variables (ATTUNE_MODE for --mode and
so on) and flags; later ones override. With ATTUNE=off in the environment, or
where attune is switched off (attune off), CMD is executed without attune. What
CMD starts with ATTUNE=off in its environment is left alone.

--probe takes a measure point: a function, by its name as the linker has it or
demangled, or a pattern, and what to take there; docs/reference/probes.md shows
all forms.

--objective says what you want to be better: a change is kept only if that is,
whatever the tunlet that proposed it goes by; docs/reference/objective.md shows
all forms.

--watch redraws a few lines at the bottom of the terminal; for programs that
use the whole screen themselves, use --timeline and follow the file.`

const runExample = `  attune run -- ./my-program input.dat
  attune run --mode advise --report r.json -- ./my-program
  attune run --html r.html -- ./my-program
  attune run --tunlet mpi-progress -- mpirun -np 64 ./solver
  attune run --probe 'libc.so.6:write if arg2 > 64K' --mode observe -- ./my-program
  attune run --probe 'my-program:ns::Matrix::*' --mode observe -- ./my-program
  attune run --objective 'output:^iteration' -- ./solver >run.log
  attune run --objective 'requests=point:my-server:handleRequest' -- ./my-server
  attune run --probe usdt:libstdc++.so.6:libstdcxx:throw -- ./my-program`

// Command returns `attune run`.
func Command(p *cli.Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:               "run [flags] -- CMD [ARGS]",
		Short:             "Run a program and tune it while it runs",
		Long:              runLong,
		Example:           runExample,
		Args:              cli.SomeCommand("run"),
		ValidArgsFunction: cli.CompleteCommand,
		RunE: func(cmd *cobra.Command, args []string) error {
			if leftAlone(p, cmd.Flags()) {
				return launch.Replace(args, cli.Environment(), p.State)
			}
			cfg, err := settings.Load(cmd.Flags(), settings.Files(os.Getenv))
			if err != nil {
				return err
			}
			return runProgram(cmd.Context(), p, cfg, args)
		},
	}
	cmd.Flags().SetInterspersed(false) // what follows CMD is CMD's
	runflags.Add(cmd)
	return cmd
}

// leftAlone says whether the program is to be executed and nothing more, before
// settings are read that may be wrong. Who asked for it by the environment knows
// why; of the switch it is told.
func leftAlone(p *cli.Env, flags *pflag.FlagSet) bool {
	if os.Getenv(track.OffVariable) == track.Off {
		return true
	}
	reason, off := permission.SwitchedOff()
	if quiet, err := flags.GetBool(settings.KeyQuiet); off && err == nil && !quiet {
		_, _ = fmt.Fprintf(p.Stderr, "attune: the program runs without it: switched off: %s\n", reason) // nobody else to tell
	}
	return off
}

// runProgram runs the program from start to report. An error means that the
// program did not run; else p.program says how it ended.
func runProgram(ctx context.Context, p *cli.Env, cfg config.Run, args []string) error {
	if err := tuner.CheckTunlets(ctx, cfg); err != nil {
		return err
	}
	if err := launch.Check(args, cli.Environment()); err != nil {
		return err // before a session begins in the files that flags name
	}
	own, err := tuner.OpenObjective(cfg.Objective)
	if err != nil {
		return err
	}
	s, err := tuner.Open(ctx, p, tuner.Options{Settings: cfg, Args: args, Objective: own})
	if err != nil {
		return err
	}
	defer s.Close()
	signals := launch.Catch(p.State)
	s.Build()
	s.PlaceProbes(ctx)
	child, err := launch.Start(ctx, s.Command(signals))
	if err != nil {
		s.Abandon()
		return err
	}
	ended := make(chan struct{})
	s.PID = child.PID()
	s.BeginAccount(child)
	s.Begin(s.PID, ended)
	s.FollowSwitch(s.GiveBack)
	if err := launch.LetGo(p.Descriptors, s.Out.NeedsStderr()); err != nil {
		s.Log.Warn("standard streams stay open here until the end", "error", err)
	}
	exit := child.Wait()
	close(ended)
	p.Program = &exit
	s.End(exit, signals)
	return nil
}
