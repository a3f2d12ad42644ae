// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/attune-hpc/attune/analyzer/report"
	"github.com/attune-hpc/attune/analyzer/tunlethost"
	"github.com/attune-hpc/attune/cmd/attune/internal/byhand"
	"github.com/attune-hpc/attune/cmd/attune/internal/cli"
	"github.com/attune-hpc/attune/cmd/attune/internal/permission"
	"github.com/attune-hpc/attune/cmd/attune/internal/settings"
	"github.com/attune-hpc/attune/cmd/attune/internal/tunletfind"
	"github.com/attune-hpc/attune/controller"
	"github.com/attune-hpc/attune/internal/config"
	"github.com/attune-hpc/attune/internal/exitcode"
)

const attachLong = `Attach brings processes that are running already, with all that they fork, under
control, and tunes them as run does with a program that it starts. The
processes are not restarted and not told: one thread of each is stopped for a
moment at a place where it is safe, to load the library that measures.

It ends when all the processes have ended, at SIGINT, SIGTERM or SIGHUP, or when
attune is switched off. A process with ATTUNE=off in its environment is refused.
Then every change is undone, measuring is taken out, and a report goes to
standard error; the library stays mapped and does nothing. With --keep, changes
that were proven good stay in force; attune changes lists them, and attune undo
takes them back.

A process that cannot be entered is watched from outside, and the report says
why: one that is stopped, traced by a debugger, statically linked, controlled by
another attune, or under a seccomp filter that stands in the way. Processes of
other users and under seccomp filters need root. Programs that the processes
start by exec are seen from outside only: use run where you can.

Settings are those of run.`

const attachExample = `  attune attach 4711
  attune attach --mode observe --report r.json 4711 4712
  attune attach --timeline t.jsonl $(pgrep solver)`

func newAttach(p *cli.Env) *cobra.Command {
	var keep bool
	cmd := &cobra.Command{
		Use:               "attach [flags] PID...",
		Short:             "Tune processes that are running already",
		Long:              attachLong,
		Example:           attachExample,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error {
			pids, err := parsePIDs(args)
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
	settings.RunFlags(cmd.Flags())
	cmd.Flags().BoolVar(&keep, "keep", false, "leave changes that were proven good in force at the end")
	cli.MustComplete(cmd, settings.KeyMode, config.Modes)
	cli.MustComplete(cmd, settings.KeyLogLevel, func() []string { return []string{"debug", "info", "warn", "error"} })
	completeProbeFlag(cmd)
	cli.MustComplete(cmd, settings.KeyTunlet, func() []string { return tunletfind.Names(tunlethost.Find(tunletfind.Dirs(nil), nil)) })
	return cmd
}

// parsePIDs reads process ids, each once.
func parsePIDs(args []string) (pids []int, err error) {
	if len(args) == 0 {
		return nil, exitcode.UsageError(errors.New("no process to attach to"), "write: attune attach PID...")
	}
	seen := make(map[int]bool)
	for _, arg := range args {
		pid, err := strconv.Atoi(arg)
		if err != nil || pid <= 0 {
			return nil, exitcode.UsageError(fmt.Errorf("%q is no process id", arg), "`ps` shows them")
		}
		if pid == os.Getpid() {
			return nil, exitcode.UsageError(errors.New("attune cannot attach to itself"), "name another process")
		}
		if !seen[pid] {
			seen[pid] = true
			pids = append(pids, pid)
		}
	}
	return pids, nil
}

// attachProcesses takes control of processes until they end or a signal comes.
// An error means that there was none to be controlled.
func attachProcesses(ctx context.Context, p *cli.Env, cfg config.Run, pids []int, keep bool) error {
	if err := checkTunlets(ctx, cfg); err != nil {
		return err
	}
	s, err := openSession(ctx, p, options{cfg: cfg, keep: keep, args: commandLine(pids[0])})
	if err != nil {
		return err
	}
	defer s.close()
	until, stop := signal.NotifyContext(ctx, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	if err := s.connect(); err != nil {
		return err
	}
	s.startAnalyzer()
	if s.live != nil {
		s.work.Go(func() { s.live.Run(s.ctx) })
	}
	attached, err := s.attachAll(until, pids)
	if len(attached) == 0 {
		s.abandon()
		return err
	}
	s.followSwitch(func() {
		s.keep = false // nobody reads it before stop
		stop()
	})
	awaitAll(until, attached)
	stop() // a second signal ends at once
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), endTimeout)
	defer cancel()
	r := s.account(ctx, report.Exit{}, func(ctx context.Context) {
		s.keepChanges(ctx)
		s.leaveAll(ctx, attached)
	})
	s.out.write(r, s.notes.Lines())
	return nil
}

// attachAll attaches to what is there; the error says why to the rest not.
func (s *session) attachAll(ctx context.Context, pids []int) (attached []*controller.Attached, err error) {
	var errs []error
	for _, pid := range pids {
		a, err := s.joined.Controller.Attach(ctx, pid)
		if err != nil {
			s.log.Warn("not attached", "pid", pid, "reason", err)
			errs = append(errs, err)
			continue
		}
		attached = append(attached, a)
		if a.NotInjected != nil {
			s.log.Warn("watched from outside", "pid", pid, "reason", a.NotInjected)
			continue
		}
		s.log.Info("attached", "pid", pid, "thread", a.Injection.Thread, "attempts", a.Injection.Attempts,
			"stopped", a.Injection.Stopped, "loaded", a.Injection.Loaded, "slots", len(a.Injection.Slots))
	}
	return attached, errors.Join(errs...)
}

// awaitAll returns when all processes have ended or ctx ends.
func awaitAll(ctx context.Context, attached []*controller.Attached) {
	var all sync.WaitGroup
	for _, a := range attached {
		all.Go(func() { _ = a.Wait(ctx) }) // it can only be the end of ctx
	}
	all.Wait()
}

// keepChanges leaves what the Analyzer has not undone in force, for attune undo.
// What cannot be kept is undone as it is without --keep.
func (s *session) keepChanges(ctx context.Context) {
	if !s.keep {
		return
	}
	kept, err := byhand.Open(ctx)
	if err != nil {
		s.log.Warn("changes are undone, for they cannot be written down", "reason", err)
		return
	}
	ids, err := s.joined.Controller.Keep(kept)
	if err := errors.Join(err, kept.Close()); err != nil {
		s.log.Warn("not every change is kept", "reason", err)
	}
	if len(ids) > 0 {
		s.log.Warn("changes stay in force: attune undo takes them back", "ids", strings.Join(ids, " "))
	}
}

// leaveTimeout bounds how long processes have to come to a hook at the end.
const leaveTimeout = 500 * time.Millisecond

func (s *session) leaveAll(ctx context.Context, attached []*controller.Attached) {
	ctx, cancel := context.WithTimeout(ctx, leaveTimeout)
	defer cancel()
	var all sync.WaitGroup
	for _, a := range attached {
		all.Go(func() {
			if stayed := a.Leave(ctx); stayed > 0 {
				s.log.Debug("calls that still pass through the library, which does nothing", "slots", stayed)
			}
		})
	}
	all.Wait()
}

// commandLine is a process' own, or its id if that cannot be read.
func commandLine(pid int) []string {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	if err != nil || len(text) == 0 {
		return []string{"pid " + strconv.Itoa(pid)}
	}
	return strings.Split(strings.TrimSuffix(string(text), "\x00"), "\x00")
}
