// SPDX-License-Identifier: Apache-2.0

package attach

import (
	"cmp"
	"context"
	"errors"
	"os"
	"os/signal"
	"slices"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/attune-hpc/attune/cmd/attune/internal/cli"
	"github.com/attune-hpc/attune/cmd/attune/internal/permission"
	"github.com/attune-hpc/attune/cmd/attune/internal/procs"
	"github.com/attune-hpc/attune/cmd/attune/internal/runflags"
	"github.com/attune-hpc/attune/cmd/attune/internal/settings"
	"github.com/attune-hpc/attune/cmd/attune/internal/tuner"
	"github.com/attune-hpc/attune/controller"
	"github.com/attune-hpc/attune/internal/beat"
	"github.com/attune-hpc/attune/internal/config"
	"github.com/attune-hpc/attune/internal/exitcode"
	"github.com/attune-hpc/attune/internal/launch"
)

const attachLong = `Attach brings processes that are running already, with all that they have forked and
will fork, under control, and tunes them as run does with a program that it starts.
They are not restarted: one thread of each is stopped for a moment at a place where
it is safe, to load the library that measures. A line on standard error says when a
process was entered.

It ends when all the processes have ended, those that they forked too, at SIGINT, SIGTERM or SIGHUP, when
attune is switched off, or when nobody reads its standard error any more. A process with
ATTUNE=off in its environment is refused.
Then every change is undone, measuring is taken out, and a report goes to
standard error; the library stays mapped and does nothing. With --keep, changes
that were proven good stay in force; attune changes lists them, and attune undo
takes them back.

A process that cannot be entered is watched from outside, and a line says why: one that
is stopped, traced by a debugger, statically linked, under a seccomp filter that stands
in the way, or where kernel.yama.ptrace_scope keeps others than root out. It is an error if none can even be watched so, since they are
another user's, which needs root, or another attune controls them. One that was stopped or traced is
entered when that is over, if something is to be measured or changed inside. Programs that the processes
start by exec, and workers that cannot come to attune by themselves, are entered when
they are half a second old: docs/reference/attach.md.

Settings are those of run.`

const attachExample = `  attune attach 4711
  attune attach --mode observe --report r.json 4711 4712
  attune attach --name postgres
  attune attach --objective 'requests=point:redis-server:processCommand' 4711
  attune attach --timeline t.jsonl --name 'solver*'`

// Command returns `attune attach`.
func Command(p *cli.Env) *cobra.Command {
	var keep bool
	var name string
	cmd := &cobra.Command{
		Use:               "attach [flags] PID...",
		Short:             "Tune processes that are running already",
		Long:              attachLong,
		Example:           attachExample,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error {
			pids, err := processes(args, name)
			if err != nil {
				return err
			}
			cfg, err := settings.Load(cmd.Flags(), settings.Files(os.Getenv))
			if err != nil {
				return err
			}
			if err := permission.ErrSwitchedOff(); err != nil {
				return err
			}
			return attachProcesses(cmd.Context(), p, cfg, pids, keep)
		},
	}
	runflags.Add(cmd)
	cmd.Flags().BoolVar(&keep, "keep", false, "leave changes that were proven good in force at the end")
	cmd.Flags().StringVar(&name, "name", "", "attach to every process that ps knows by a name that matches `PATTERN`; of root, those of any one user")
	return cmd
}

// processes are those that are named, with what descends from them already.
func processes(args []string, name string) ([]int, error) {
	if len(args) == 0 && name == "" {
		return nil, exitcode.UsageError(errors.New("no process to attach to"), "write: attune attach PID..., or --name PATTERN")
	}
	var pids []int
	if name != "" {
		var err error
		if pids, err = procs.Named(name); err != nil {
			return nil, err
		}
	}
	if len(args) > 0 {
		given, err := procs.Parse(args)
		if err != nil {
			return nil, err
		}
		pids = append(pids, given...)
	}
	if err := procs.RefuseAll(pids); err != nil {
		return nil, err
	}
	slices.Sort(pids)
	return procs.Family(slices.Compact(pids)), nil
}

// attachProcesses takes control of processes until they end, a signal comes or nobody reads
// what it says any more.
// An error means that there was none to be controlled.
func attachProcesses(ctx context.Context, p *cli.Env, cfg config.Run, pids []int, keep bool) error {
	if err := tuner.CheckTunlets(ctx, cfg); err != nil {
		return err
	}
	own, err := tuner.OpenObjectiveOf(cfg.Objective, pids)
	if err != nil {
		return err
	}
	cli.OutlivePipes()
	until, stop := signal.NotifyContext(ctx, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	told := *p
	told.Stderr = cli.UntilGone(p.Stderr, stop)
	s, err := tuner.Open(ctx, &told, tuner.Options{Settings: cfg, Keep: keep, Running: true, Args: tuner.CommandLine(pids[0]), Objective: own})
	if err != nil {
		return err
	}
	defer s.Close()
	if err := s.Connect(); err != nil {
		return err
	}
	s.StartAnalyzer()
	s.FollowSwitch(func() {
		s.Keep = false // nobody reads it before stop
		stop()
	})
	attached, err := s.AttachAll(until, pids)
	if !slices.ContainsFunc(attached, func(a *controller.Attached) bool { return !a.Refused() }) {
		s.Abandon()
		return cmp.Or(permission.ErrSwitchedOff(), err)
	}
	s.Say(err)
	if s.Live != nil {
		s.Work.Go(func() { s.Live.Run(s.Ctx) })
		s.Work.Go(func() { launch.AnnounceStops(s.Ctx, s.Live.Pause, s.Live.Resume) })
	}
	tuner.AwaitAll(until, attached)
	awaitForked(until, s.Joined.Controller)
	cli.EndAtNext(stop)
	finish(ctx, s, attached)
	return nil
}

// finish lets go of the processes, and reports.
func finish(ctx context.Context, s *tuner.Tuner, attached []*controller.Attached) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), tuner.EndTimeout)
	defer cancel()
	r := s.Account(ctx, nil, func(ctx context.Context) {
		s.KeepChanges(ctx)
		s.LeaveAll(ctx, attached)
	})
	s.Out.Write(r, s.Notes.Lines())
}

const (
	// lastLook is how often it is looked whether processes are left that others have forked,
	// and lastLooks how often in a row there are none when all have ended: the kernel tells
	// of a new one a moment later.
	lastLook  = 50 * time.Millisecond
	lastLooks = 5
)

// awaitForked returns when all that the processes have forked has ended, or ctx ends: a
// service that replaces itself goes on in another process.
func awaitForked(ctx context.Context, c *controller.Controller) {
	for none := 0; none < lastLooks; none++ {
		if c.Living() > 0 {
			none = -1
		}
		if !beat.Pause(ctx, lastLook) {
			return
		}
	}
}
