// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"log/slog"
	"os"
	"strconv"
	"sync"
	"time"

	"github.com/attune-hpc/attune/analyzer"
	"github.com/attune-hpc/attune/cmd/attune/internal/cli"
	"github.com/attune-hpc/attune/cmd/attune/internal/knowledge"
	"github.com/attune-hpc/attune/cmd/attune/internal/live"
	"github.com/attune-hpc/attune/cmd/attune/internal/permission"
	"github.com/attune-hpc/attune/cmd/attune/internal/settings"
	"github.com/attune-hpc/attune/cmd/attune/internal/tunletfind"
	"github.com/attune-hpc/attune/controller"
	"github.com/attune-hpc/attune/controller/policy"
	"github.com/attune-hpc/attune/internal/config"
	"github.com/attune-hpc/attune/internal/exitcode"
	"github.com/attune-hpc/attune/internal/launch"
	"github.com/attune-hpc/attune/internal/logging"
	"github.com/attune-hpc/attune/internal/objfile"
	"github.com/attune-hpc/attune/internal/rundir"
	"github.com/attune-hpc/attune/local"
)

// session is one `attune run`: an Analyzer and an Application Controller in this
// process, and what belongs to the command that runs them. Each part may be
// missing; the program runs with what is there.
type session struct {
	options

	out outputs

	notes    logging.Collector
	log      *slog.Logger
	closeLog func() error

	joined    *local.Session
	knowledge knowledge.Lazy
	env       []string   // the program's
	pid       int        // the program's
	live      *live.Live // nil: nothing is watched

	ctx    context.Context // of what runs beside the program
	cancel context.CancelFunc
	begun  sync.WaitGroup // until the Analyzer is started
	work   sync.WaitGroup
}

// options are what a session goes by.
type options struct {
	cfg  config.Run
	args []string // of the program, for the report
	keep bool     // changes stay in force at the end
	// probing: nothing is tuned, no tunlet is started.
	probing bool
	// outside: nothing is loaded into processes.
	outside bool
	// dir is the session's directory; nil until connect makes it, unless given.
	dir *rundir.Dir
	// place is where the program finds this session; zero: in the run directory.
	place place
	// descriptions is where those of the tunlets are kept; empty: where the user
	// has them.
	descriptions string
}

// openSession prepares what can be refused: nothing has been started yet. What runs
// beside the program ends with ctx. The caller closes it.
func openSession(ctx context.Context, p *cli.Env, o options) (*session, error) {
	s := &session{options: o, env: cli.Environment()}
	s.ctx, s.cancel = context.WithCancel(ctx)
	if err := s.openOutputs(p); err != nil {
		s.cancel()
		return nil, err
	}
	return s, nil
}

// checkTunlets refuses tunlets and settings of theirs that are not there.
func checkTunlets(ctx context.Context, cfg config.Run) error {
	if err := tunletfind.Check(cfg.Tunlets, tunletfind.Dirs(cfg.TunletDirs)); err != nil {
		return err
	}
	return tunletfind.CheckOptions(ctx, cfg)
}

// place is what a program's environment names.
type place struct {
	id        string   // of the job
	gate      string   // socket of the start gate
	early     *os.File // listens where memory is left before; may be nil
	libraries string   // directory for the library
}

// runProgram runs the program from start to report. An error means that the
// program did not run; else p.program says how it ended.
func runProgram(ctx context.Context, p *cli.Env, cfg config.Run, args []string) error {
	if err := checkTunlets(ctx, cfg); err != nil {
		return err
	}
	s, err := openSession(ctx, p, options{cfg: cfg, args: args})
	if err != nil {
		return err
	}
	defer s.close()
	signals := launch.Catch(p.State)
	s.build()
	s.placeProbes(ctx)
	child, err := launch.Start(ctx, s.command(signals))
	if err != nil {
		s.abandon()
		return err
	}
	ended := make(chan struct{})
	s.pid = child.PID()
	s.begin(s.pid, ended)
	s.followSwitch(s.giveBack)
	if err := launch.LetGo(p.Descriptors, s.out.needsStderr()); err != nil {
		s.log.Warn("standard streams stay open here until the end", "error", err)
	}
	exit := child.Wait()
	close(ended)
	p.Program = &exit
	s.end(exit, signals)
	return nil
}

func (s *session) command(signals *launch.Signals) launch.Command {
	cmd := launch.Command{Args: s.args, Env: s.env, Signals: signals, Log: s.log}
	if s.live != nil {
		cmd.Stopping, cmd.Continued = s.live.Pause, s.live.Resume
	}
	return cmd
}

func (s *session) openOutputs(p *cli.Env) error {
	if err := s.out.open(s.cfg, p); err != nil {
		return err
	}
	level, err := logging.ParseLevel(s.cfg.LogLevel)
	if err != nil {
		return err
	}
	s.log, s.closeLog, err = logging.Open(logging.Options{File: s.cfg.LogFile, Level: level, Collect: &s.notes})
	if err != nil {
		s.out.close()
		return exitcode.UsageError(err, "name a file in a directory that you may write to with --log-file")
	}
	return nil
}

// build constructs Analyzer and controller and lets them find each other. What
// fails is noted, and the program runs with what there is.
func (s *session) build() {
	if err := s.connect(); err != nil {
		s.log.Error("the program runs unwatched", "error", err)
		return
	}
	s.env = cli.Set(s.env, preloadable(s.args, s.env, s.joined.Controller.Environment(), s.log))
}

func (s *session) connect() (err error) {
	s.joined = new(local.Session)
	if s.dir == nil {
		s.dir, err = rundir.Create(rundir.Current())
	}
	if err != nil {
		return err
	}
	s.joined, err = local.New(s.parts())
	if s.cfg.Watch && s.joined.Analyzer != nil {
		s.live = live.New(live.Options{Output: os.Stderr, Snapshot: s.joined.Analyzer.Snapshot})
	}
	if err != nil {
		return err
	}
	return s.joined.Start(s.ctx)
}

// parts are the settings of both parts.
func (s *session) parts() local.Options {
	user := rundir.Current()
	at := s.place
	if at == (place{}) {
		at = place{id: s.jobID(), gate: s.dir.Socket("gate"), libraries: user.LibraryDir(s.dir)}
	}
	if s.outside {
		at.libraries = ""
	}
	return local.Options{
		Dir: s.dir.Path, JobID: at.id, LibraryDir: at.libraries, VariablesDir: user.VariablesDir(),
		Digests: objfile.NewDigests(objfile.DigestsOptions{Dir: user.DigestDir()}), Log: s.log,
		Analyzer: analyzer.Config{
			Knowledge: &s.knowledge,
			Mode:      s.cfg.Mode, Keep: s.keep, Command: s.args,
			Apart:      tunedApart(os.Getenv, s.place != (place{})),
			TunletDirs: tunletfind.Dirs(s.cfg.TunletDirs), Tunlets: s.cfg.Tunlets, TunletOptions: s.cfg.TunletOptions,
			Probes: s.cfg.Probes, NoTunlets: s.probing,
			DescriptionDir: cmp.Or(s.descriptions, user.DescriptionDir()), TunletLimits: settings.TunletLimits(s.cfg.TunletMB, s.cfg.TunletCPU),
			Timeline: writerOf(s.out.timeline), Record: writerOf(s.out.record),
		},
		Controller: controller.Config{
			GatePath: at.gate, EarlyGate: at.early, StateDir: user.StateDir(s.dir), UseBPF: !s.cfg.NoBPF,
			Budget: s.cfg.Budget / 100, Policy: s.policy().Always,
		},
	}
}

// policy is that of the site. One that cannot be read denies every change; the
// program is watched all the same.
func (s *session) policy() *policy.Policy {
	p, err := permission.Policy()
	if err != nil {
		s.log.Warn("nothing is changed", "error", err)
	}
	return p
}

// jobID is unique on this node for as long as it is up, and readable.
func (s *session) jobID() string {
	if s.place.id != "" {
		return s.place.id
	}
	host, err := os.Hostname()
	if err != nil {
		host = "local"
	}
	return host + "-" + strconv.Itoa(os.Getpid()) + "-" + s.dir.Tag()
}

// headStart is how long the tunlets wait for the program to get to its main:
// starting them takes CPU time that it would miss. A program that ends earlier
// needs none.
const headStart = 25 * time.Millisecond

// begin starts what need not be there when the program starts. It returns at
// once; ended is closed when the program has ended.
func (s *session) begin(pid int, ended <-chan struct{}) {
	if s.joined.Controller != nil {
		s.work.Go(func() {
			if err := s.joined.Controller.Follow(pid); err != nil {
				s.log.Debug("follow the program", "error", err) // it may have ended
			}
		})
	}
	if s.joined.Analyzer == nil {
		return
	}
	if len(s.cfg.Probes) == 0 { // else it runs already
		s.begun.Go(func() {
			timer := time.NewTimer(headStart)
			defer timer.Stop()
			select {
			case <-timer.C:
			case <-ended:
			}
			s.startAnalyzer()
		})
	}
	if s.live != nil {
		s.work.Go(func() { s.live.Run(s.ctx) })
	}
}

func (s *session) startAnalyzer() {
	if err := s.joined.Analyzer.Start(s.ctx); err != nil {
		s.log.Warn("not every tunlet can be used", "error", err)
	}
}

// probesTimeout bounds how long the program waits for --probe.
const probesTimeout = time.Second

// placeProbes has the functions of --probe watched before the program starts:
// whoever asks for them wants every call counted.
func (s *session) placeProbes(ctx context.Context) {
	if len(s.cfg.Probes) == 0 || s.joined.Analyzer == nil || s.joined.Controller == nil {
		return
	}
	s.startAnalyzer()
	ctx, cancel := context.WithTimeout(ctx, probesTimeout)
	defer cancel()
	if err := s.joined.Controller.AwaitPoints(ctx, len(s.cfg.Probes)); err != nil {
		s.log.Warn("first calls of the probed functions may be missed", "error", err)
	}
}
