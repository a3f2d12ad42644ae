// SPDX-License-Identifier: Apache-2.0

package tuner

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
	"github.com/attune-hpc/attune/controller/accountant"
	"github.com/attune-hpc/attune/controller/policy"
	"github.com/attune-hpc/attune/internal/config"
	"github.com/attune-hpc/attune/internal/exitcode"
	"github.com/attune-hpc/attune/internal/launch"
	"github.com/attune-hpc/attune/internal/logging"
	"github.com/attune-hpc/attune/internal/objfile"
	"github.com/attune-hpc/attune/internal/rundir"
	"github.com/attune-hpc/attune/local"
)

// Tuner is one `attune run`: an Analyzer and an Application Controller in this
// process, and what belongs to the command that runs them. Each part may be
// missing; the program runs with what is there.
type Tuner struct {
	Options

	// Out is where the report goes, and Notes what is to stand in it.
	Out   outputs
	Notes logging.Collector
	Log   *slog.Logger
	// Joined is there after Connect.
	Joined *local.Session
	// Live redraws the terminal; nil: nothing is watched.
	Live *live.Live
	// PID is that of the program; 0: it is not this command's.
	PID int
	// Ctx is of what runs beside the program: Begun until the Analyzer is started,
	// Work until all has ended. Cancel ends it.
	Ctx    context.Context
	Cancel context.CancelFunc
	Begun  sync.WaitGroup
	Work   sync.WaitGroup

	// accountant makes the account of the program that this command starts; nil: there is
	// none, and that is noted.
	accountant *accountant.Accountant
	closeLog   func() error
	knowledge  knowledge.Lazy
	env        []string // the program's
	named      namedProcesses
}

// Options of a Tuner.
type Options struct {
	Settings config.Run
	Args     []string // of the program, for the report
	// Objective is what the owner wants to be better; zero: each tunlet's own judges.
	Objective Objective
	Keep      bool // changes stay in force at the end
	// Probing: nothing is tuned, no tunlet is started.
	Probing bool
	// Running: the processes run already. Those of them, and those that they fork, that
	// come without the library get it while they run.
	Running bool
	// Outside: nothing is loaded into processes.
	Outside bool
	// Dir is the session's directory; nil until Connect makes it, unless given.
	Dir *rundir.Dir
	// Place is where the program finds this session; zero: in the run directory.
	Place Place
	// Descriptions is where those of the tunlets are kept; empty: where the user
	// has them.
	Descriptions string
}

// Open prepares what can be refused: nothing has been started yet. What runs
// beside the program ends with ctx. The caller closes it.
func Open(ctx context.Context, p *cli.Env, o Options) (*Tuner, error) {
	s := &Tuner{Options: o, env: cli.Environment()}
	s.Ctx, s.Cancel = context.WithCancel(ctx)
	if err := s.openOutputs(p); err != nil {
		s.Cancel()
		return nil, err
	}
	return s, nil
}

// CheckTunlets refuses tunlets and settings of theirs that are not there.
func CheckTunlets(ctx context.Context, cfg config.Run) error {
	return tunletfind.CheckAll(ctx, cfg.TunletDirs, cfg.Tunlets, cfg.OptionsOf, cfg.TunletOptions)
}

// Place is what a program's environment names.
type Place struct {
	ID        string   // of the job
	Gate      string   // socket of the start gate
	Early     *os.File // listens where memory is left before; may be nil
	Libraries string   // directory for the library
}

// Command is how the program is started.
func (s *Tuner) Command(signals *launch.Signals) launch.Command {
	cmd := launch.Command{Args: s.Args, Env: s.env, Signals: signals, Log: s.Log}
	if s.accountant != nil {
		s.accountant.Prepare(&cmd)
	}
	if s.Live != nil {
		cmd.Stopping, cmd.Continued = s.Live.Pause, s.Live.Resume
	}
	return cmd
}

func (s *Tuner) openOutputs(p *cli.Env) error {
	if err := s.Out.open(s.Settings, p); err != nil {
		return err
	}
	level, err := logging.ParseLevel(s.Settings.LogLevel)
	if err != nil {
		return err
	}
	s.Log, s.closeLog, err = logging.Open(logging.Options{File: s.Settings.LogFile, Level: level, Collect: &s.Notes})
	if err != nil {
		s.Out.close()
		return exitcode.UsageError(err, "name a file in a directory that you may write to with --log-file")
	}
	return s.Out.begin()
}

// Build constructs Analyzer, controller and accountant and lets them find each other. What
// fails is noted, and the program runs with what there is.
func (s *Tuner) Build() {
	var ready sync.WaitGroup // it takes the kernel as long as all the rest
	ready.Go(s.openAccount)
	defer ready.Wait()
	if err := s.Connect(); err != nil {
		s.Log.Error("the program runs unwatched", "error", err)
		return
	}
	s.env = cli.Set(s.env, preloadable(s.Args, s.env, s.Joined.Controller.Environment(), s.Log))
}

// Connect makes Analyzer and controller and lets them find each other. After an
// error there is what could be made.
func (s *Tuner) Connect() (err error) {
	s.Joined = new(local.Session)
	if s.Dir == nil {
		s.Dir, err = rundir.Create(rundir.Current())
	}
	if err != nil {
		return err
	}
	s.Joined, err = local.New(s.parts())
	if s.Settings.Watch && s.Joined.Analyzer != nil {
		s.Live = live.New(live.Options{Output: os.Stderr, Snapshot: s.Joined.Analyzer.Snapshot})
	}
	if err != nil {
		return err
	}
	if err := s.Joined.Start(s.Ctx); err != nil {
		return err
	}
	s.Objective.measure(s.Ctx, s.Joined.Analyzer)
	return nil
}

// parts are the settings of both parts.
func (s *Tuner) parts() local.Options {
	user := rundir.Current()
	at := s.Place
	if at == (Place{}) {
		at = Place{ID: s.jobID(), Gate: s.Dir.Socket("gate"), Libraries: user.LibraryDir(s.Dir)}
	}
	if s.Outside {
		at.Libraries = ""
	}
	return local.Options{
		Dir: s.Dir.Path, JobID: at.ID, LibraryDir: at.Libraries, VariablesDir: user.VariablesDir(),
		Digests: objfile.NewDigests(user.DigestDir()), Log: s.Log,
		Analyzer: analyzer.Config{
			Knowledge: &s.knowledge,
			Mode:      s.Settings.Mode, Keep: s.Keep, Command: s.Args,
			Apart:      tunedApart(os.Getenv, s.Place != (Place{})),
			TunletDirs: tunletfind.Dirs(s.Settings.TunletDirs), Tunlets: s.Settings.Tunlets, TunletOptions: s.Settings.TunletOptions,
			Objective: s.Objective.spec, NodesMeasure: s.Objective.nodes, Probes: s.Settings.Probes, NoTunlets: s.Probing,
			DescriptionDir: cmp.Or(s.Descriptions, user.DescriptionDir()), TunletLimits: settings.TunletLimits(s.Settings.TunletMB, s.Settings.TunletCPU),
			Timeline: writerOf(s.Out.timeline), Record: writerOf(s.Out.record),
		},
		Controller: controller.Config{
			GatePath: at.Gate, EarlyGate: at.Early, LateLibrary: s.Running, StateDir: user.StateDir(s.Dir), UseBPF: !s.Settings.NoBPF,
			Entered: func(pid int) { s.named.entered(pid, &s.Out) }, Budget: s.Settings.Budget / 100, Policy: sitePolicy(s.Log),
		},
	}
}

// sitePolicy is that of the site, which is read while the program starts: that may take
// as long as a directory service of users does, and whoever needs the policy waits. One
// that cannot be read denies every change; the program is watched all the same.
func sitePolicy(log *slog.Logger) func() *policy.Policy {
	read := make(chan *policy.Policy, 1)
	go func() {
		p, err := permission.Policy()
		if err != nil {
			log.Warn("nothing is changed", "error", err)
		}
		read <- p
	}()
	return sync.OnceValue(func() *policy.Policy { return <-read })
}

// jobID is unique on this node for as long as it is up, and readable.
func (s *Tuner) jobID() string {
	if s.Place.ID != "" {
		return s.Place.ID
	}
	host, err := os.Hostname()
	if err != nil {
		host = "local"
	}
	return host + "-" + strconv.Itoa(os.Getpid()) + "-" + s.Dir.Tag()
}

// headStart is how long the tunlets wait for the program to get to its main:
// starting them takes CPU time that it would miss. A program that ends earlier
// needs none.
const headStart = 25 * time.Millisecond

// Begin starts what need not be there when the program starts. It returns at
// once; ended is closed when the program has ended.
func (s *Tuner) Begin(pid int, ended <-chan struct{}) {
	if s.Joined.Controller != nil {
		s.Work.Go(func() {
			if err := s.Joined.Controller.Follow(pid); err != nil {
				s.Log.Debug("follow the program", "error", err) // it may have ended
			}
		})
	}
	if s.Joined.Analyzer == nil {
		return
	}
	if len(s.Settings.Probes) == 0 { // else it runs already
		s.Begun.Go(func() {
			timer := time.NewTimer(headStart)
			defer timer.Stop()
			select {
			case <-timer.C:
			case <-ended:
			}
			s.StartAnalyzer()
		})
	}
	if s.Live != nil {
		s.Work.Go(func() { s.Live.Run(s.Ctx) })
	}
}

// StartAnalyzer starts the tunlets.
func (s *Tuner) StartAnalyzer() {
	if err := s.Joined.Analyzer.Start(s.Ctx); err != nil {
		s.Log.Warn("not every tunlet can be used", "error", err)
	}
}

// probesTimeout bounds how long the program waits for --probe.
const probesTimeout = time.Second

// PlaceProbes has the functions of --probe watched before the program starts:
// whoever asks for them wants every call counted.
func (s *Tuner) PlaceProbes(ctx context.Context) {
	if len(s.Settings.Probes) == 0 || s.Joined.Analyzer == nil || s.Joined.Controller == nil {
		return
	}
	s.StartAnalyzer()
	ctx, cancel := context.WithTimeout(ctx, probesTimeout)
	defer cancel()
	if err := s.Joined.Controller.AwaitPoints(ctx, len(s.Settings.Probes)); err != nil {
		s.Log.Warn("first calls of the probed functions may be missed", "error", err)
	}
}
