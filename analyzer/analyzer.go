// SPDX-License-Identifier: Apache-2.0

package analyzer

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"time"

	"github.com/attune-hpc/attune/analyzer/core"
	"github.com/attune-hpc/attune/analyzer/fold"
	"github.com/attune-hpc/attune/analyzer/probes"
	"github.com/attune-hpc/attune/analyzer/report"
	"github.com/attune-hpc/attune/analyzer/session"
	"github.com/attune-hpc/attune/analyzer/tunlethost"
	"github.com/attune-hpc/attune/internal/objective"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// Analyzer is one session with its tunlets. Its channels are served by its own
// Serve, or by somebody who serves those of many sessions, see Session.
type Analyzer struct {
	views
	log      *slog.Logger
	host     *tunlethost.Host
	probes   *probes.Probes
	server   *server
	learner  learner
	wg       sync.WaitGroup // the session's loop
	stopOnce sync.Once
	begun    sync.Once          // the session's loop
	cancel   context.CancelFunc // of what was begun
}

// New returns an Analyzer whose session begins now. It fails for an unknown
// mode. What New made is ended by Stop, whether Start was called or not.
func New(cfg Config) (*Analyzer, error) {
	mode, err := core.ParseMode(cfg.Mode)
	if err != nil {
		return nil, err
	}
	cfg.Log = cmp.Or(cfg.Log, slog.New(slog.DiscardHandler))
	a := &Analyzer{views: views{cfg: cfg, account: fold.NewAccount(), written: newWritten(cfg)}, log: cfg.Log.With("component", "analyzer")}
	a.learner = learner{knowledge: cfg.Knowledge, owned: cfg.Objective != nil, log: a.log}
	var known func(string) []core.Known
	if cfg.Knowledge != nil {
		known = a.learner.known
	}
	var part func(string, *attunev1.ObjectivePart) string
	if cfg.Objective != nil {
		part = newNodes(*cfg.Objective, a.Measured).take
	}
	a.session = session.New(session.Config{
		Known: known, NodesMeasure: cfg.NodesMeasure, Part: part,
		ID: cfg.JobID, Command: cfg.Command, Tick: cfg.tick, Lease: cfg.Lease, ProvenLease: cfg.ProvenLease,
		Sinks: a.sinks(), Version: cfg.Version, Grace: cfg.Grace, Inherit: cfg.Inherit,
		Core: cfg.core(mode), Log: a.log,
	})
	a.host = tunlethost.New(tunlethost.Options{
		Dirs: cfg.TunletDirs, Names: cfg.Tunlets, Config: cfg.TunletOptions, Limits: cfg.TunletLimits,
		Pool: cfg.TunletPool, User: cfg.User, TempDir: cfg.TempDir, Digests: cfg.Digests, DescriptionDir: cfg.DescriptionDir, Log: a.log,
	}, observer{a.session})
	a.probes = probes.New(a.session, a.account)
	a.server = &server{session: a.session, probes: a.probes}
	a.hosted = &hosted{host: a.host, session: a.session, ownCost: cfg.OwnCost, state: map[string]*attunev1.RecordedTunletState{}}
	return a, nil
}

// observer hands the host's tunlets to the session.
type observer struct{ *session.Session }

func (o observer) TunletReady(t *tunlethost.Tunlet) { o.Session.TunletReady(t) }

// Measured takes a value of the owner's objective (Config.Objective) over an interval that
// ends at that time. It does not wait. Any goroutine may call it.
func (a *Analyzer) Measured(value float64, end time.Time) { a.session.Measured(value, end) }

// Remark adds a sentence for people to the account.
func (a *Analyzer) Remark(text string) {
	a.session.Tell(&attunev1.RecordingFrame{What: &attunev1.RecordingFrame_Remark{
		Remark: &attunev1.RecordedRemark{From: report.OwnerName, Text: text},
	}})
}

// remarkLater is Remark for the session's loop, which must not wait for itself.
func (a *Analyzer) remarkLater(text string) { a.wg.Go(func() { a.Remark(text) }) }

// Session takes what the channels carry that belong to this session.
func (a *Analyzer) Session() *session.Session { return a.session }

// Start is Begin and StartTunlets.
func (a *Analyzer) Start(ctx context.Context) error {
	return a.StartTunlets(a.Begin(ctx))
}

// Begin starts the session and returns a context for StartTunlets. It does not
// end with ctx but with Stop, since the end of a run has to be written down when
// everything else is being ended.
func (a *Analyzer) Begin(ctx context.Context) context.Context {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	a.begun.Do(func() {
		a.cancel = cancel
		a.wg.Go(func() { a.session.Run(ctx) })
	})
	if len(a.cfg.Probes) > 0 {
		a.ask(ctx, report.OwnerName, nil, ownPoints(a.cfg.Probes))
	}
	if a.cfg.Objective != nil && a.cfg.Objective.Kind == objective.Point {
		want := &attunev1.Want{Points: []*attunev1.PointWant{{Point: a.cfg.Objective.Point}}}
		a.ask(ctx, report.ObjectiveAsker, newHitRate(a.Measured, a.remarkLater), want)
	}
	if a.written.recorder != nil {
		a.ask(ctx, report.OwnerName+" record", nil, &attunev1.Want{PeriodNanos: 1}) // each sample: a tunlet may want it
	}
	return ctx
}

// ask asks the session for what the owner, or what writes things down for them, is to see: by
// a sink of its own, or by all that the session has (nil).
func (a *Analyzer) ask(ctx context.Context, name string, sink session.Sink, want *attunev1.Want) {
	if err := a.session.Ask(ctx, name, sink, func() (*attunev1.Want, error) { return want, nil }); err != nil {
		a.log.Warn("not everything is measured", "asker", name, "error", err)
	}
}

// Probes are the measure points that people have in the session.
func (a *Analyzer) Probes() *probes.Probes { return a.probes }

// StartTunlets starts the tunlets in the background, once. The error names those
// that are missing or refused; the Analyzer runs nevertheless.
func (a *Analyzer) StartTunlets(ctx context.Context) error {
	if a.cfg.NoTunlets {
		return nil
	}
	if err := a.host.Start(ctx); err != nil {
		return fmt.Errorf("start tunlets: %w", err)
	}
	return nil
}

// sinks are what the session's frames are told to: first who knows what they mean.
func (a *Analyzer) sinks() []session.Sink {
	sinks := append([]session.Sink{a.account}, a.written.sinks(a.account)...)
	if a.cfg.Changed != nil {
		sinks = append(sinks, changes(a.cfg.Changed))
	}
	return sinks
}

// changes calls a function when the summary may have changed.
type changes func()

// Take implements session.Sink.
func (c changes) Take(f *attunev1.RecordingFrame) {
	switch f.GetWhat().(type) {
	case *attunev1.RecordingFrame_Process, *attunev1.RecordingFrame_ProcessGone, *attunev1.RecordingFrame_Controller,
		*attunev1.RecordingFrame_Decision:
		c()
	}
}

// Serve serves the channels on a Unix socket until ctx ends or Stop, and then
// returns nil. Peers must be the present user or root. It closes the listener, and is
// called once.
func (a *Analyzer) Serve(ctx context.Context, lis net.Listener) error {
	return a.server.serve(ctx, lis)
}

// Settle ends the deciding: changes in processes that still run are undone.
// Controllers may still deliver; Finish, which includes this, tells the tunlets
// that the application has ended and closes the channels. A controller in the
// same process is stopped between the two, so that the tunlets and the report
// get its last figures.
func (a *Analyzer) Settle(ctx context.Context) error { return a.session.Settle(ctx) }

// Finish ends the session: changes in processes that still run are undone, the
// tunlets are told and ended, everything is stopped. It returns the final
// report, which is complete even when ctx ends early; what could not be done
// is among its remarks. end says how the application ended; nil: it goes on.
func (a *Analyzer) Finish(ctx context.Context, end *attunev1.RecordedExit) *report.Report {
	if err := a.session.Finish(ctx); err != nil {
		a.Remark(err.Error())
	}
	if end != nil {
		a.session.Tell(&attunev1.RecordingFrame{What: &attunev1.RecordingFrame_Exit{Exit: end}})
	}
	a.learner.learn(ctx, a.session, a.account)
	a.Stop(ctx)
	return a.Report()
}

// Stop ends tunlets, channels and session, in this order, and waits for them:
// some milliseconds, at most channel.HelloPatience more for a peer that has
// connected and says nothing, 2 s for a tunlet's output that something holds open, and a
// second for a timeline that nobody reads. It may be called more than once.
func (a *Analyzer) Stop(context.Context) {
	a.stopOnce.Do(func() {
		a.host.Stop()
		a.begun.Do(a.endUnbegun)
		a.server.stop()
		a.hosted.end()
		a.session.Close()
		a.wg.Wait()
		a.cancel()
		a.written.close()
	})
}

// Abandon is Stop for a session that another Analyzer goes on with: nothing is
// undone, no tunlet is told of an end.
func (a *Analyzer) Abandon(ctx context.Context) {
	a.session.Close()
	a.Stop(ctx)
}

// endUnbegun ends the loop of a session that was never begun, so that nobody waits for it.
func (a *Analyzer) endUnbegun() {
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	a.cancel = cancel
	a.session.Run(ended)
}
