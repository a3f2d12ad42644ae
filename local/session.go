// SPDX-License-Identifier: Apache-2.0

package local

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net"
	"sync"

	"github.com/attune-hpc/attune/analyzer"
	"github.com/attune-hpc/attune/analyzer/report"
	"github.com/attune-hpc/attune/controller"
	"github.com/attune-hpc/attune/controller/actuate/hidden"
	"github.com/attune-hpc/attune/dmlib"
	"github.com/attune-hpc/attune/internal/buildinfo"
	"github.com/attune-hpc/attune/internal/clock"
	"github.com/attune-hpc/attune/internal/objfile"
	"github.com/attune-hpc/attune/internal/rundir"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// Options of a Session.
type Options struct {
	// Dir holds the socket of the Analyzer, and what its tunlets write; it is there.
	Dir string
	// JobID is unique on the node for as long as it is up.
	JobID string
	// LibraryDir is where DMLib is installed; empty: nothing is loaded into processes.
	LibraryDir string
	// VariablesDir keeps where variables without symbol were found; empty: they are
	// not found.
	VariablesDir string
	// Digests of files, for both parts; may be nil.
	Digests *objfile.Digests
	// Analyzer and Controller are the settings of either part. The session fills in
	// what follows from the fields above, and the address and version of both.
	Analyzer   analyzer.Config
	Controller controller.Config
	// Log may be nil.
	Log *slog.Logger
}

// Socket is the name of the Analyzer's socket in the directory of a session.
const Socket = "analyzer"

// Session is an Analyzer and a controller. Its methods are safe for concurrent use.
type Session struct {
	// Analyzer and Controller; nil: it could not be made.
	Analyzer   *analyzer.Analyzer
	Controller *controller.Controller

	log      *slog.Logger
	listener net.Listener
	address  string
	served   sync.WaitGroup
	stopped  sync.Once // the controller
}

// New makes both parts; nothing runs yet. With an error it returns what could be
// made: an Analyzer without a controller, or none. The caller calls Close.
func New(o Options) (*Session, error) {
	s := &Session{log: cmp.Or(o.Log, slog.New(slog.DiscardHandler)), address: rundir.SocketIn(o.Dir, Socket)}
	a := o.Analyzer
	a.JobID, a.TempDir, a.Digests, a.Log, a.Version, a.OwnCost = o.JobID, o.Dir, o.Digests, o.Log, buildinfo.Get().Version, clock.Process
	var err error
	if s.Analyzer, err = analyzer.New(a); err != nil {
		return s, err
	}
	if s.listener, err = net.Listen("unix", s.address); err != nil {
		return s, err
	}
	c := o.Controller
	c.AnalyzerAddress, c.JobID, c.Digests, c.Log = s.Address(), o.JobID, o.Digests, o.Log
	c.LibraryPath, c.Hidden = s.library(o.LibraryDir), s.prober(o.VariablesDir)
	s.Controller, err = controller.New(c)
	return s, err
}

// library installs DMLib. Without it processes are watched from outside.
func (s *Session) library(dir string) string {
	if dir == "" {
		return ""
	}
	path, err := dmlib.Install(dir)
	if err != nil {
		s.log.Warn("the program is only watched from outside", "error", err)
	}
	return path
}

func (s *Session) prober(dir string) *hidden.Prober {
	if dir == "" {
		return nil
	}
	helper, err := dmlib.LoadProbe()
	if err != nil {
		s.log.Debug("variables without symbol are not found", "error", err)
	}
	return &hidden.Prober{Helper: helper, Dir: dir}
}

// Address is that of the Analyzer, for a gRPC client.
func (s *Session) Address() string { return "unix:" + s.address }

// Start lets the two find each other; ctx bounds what runs from then on. The tunlets
// and measure points wait for the Analyzer's own Start. After an error there is no
// controller.
func (s *Session) Start(ctx context.Context) error {
	s.served.Go(func() {
		if err := s.Analyzer.Serve(ctx, s.listener); err != nil {
			s.log.Error("the channels have ended", "error", err)
		}
	})
	if err := s.Controller.Start(ctx); err != nil {
		s.Controller = nil
		return err
	}
	return nil
}

// Finish ends both parts and returns the report: first the changes in what still
// runs, while the two can talk; then what leave gives back, which may be nil; then
// all that the controller still has; then the account. For end see
// [analyzer.Analyzer.Finish].
func (s *Session) Finish(ctx context.Context, end *attunev1.RecordedExit, leave func(context.Context)) *report.Report {
	s.Settle(ctx)
	if leave != nil {
		leave(ctx)
	}
	s.StopController(ctx)
	return s.Analyzer.Finish(ctx, end)
}

// Settle takes changes back in what still runs.
func (s *Session) Settle(ctx context.Context) {
	if err := s.Analyzer.Settle(ctx); err != nil {
		s.log.Warn("not everything was settled at the end", "error", err)
	}
}

// StopController ends the controller, once; whoever comes second waits for it.
func (s *Session) StopController(ctx context.Context) {
	if s.Controller == nil {
		return
	}
	s.stopped.Do(func() {
		if err := s.Controller.Stop(ctx); err != nil {
			s.log.Warn("not everything was given back; the journal has the rest", "error", err)
		}
	})
}

// Stop ends both parts without a report.
func (s *Session) Stop(ctx context.Context) {
	s.StopController(ctx)
	if s.Analyzer != nil {
		s.Analyzer.Stop(ctx)
	}
}

// Close frees what New made, once the Analyzer is stopped or the context of Start
// has ended, and waits for the channels.
func (s *Session) Close() error {
	s.served.Wait()
	if s.listener == nil {
		return nil
	}
	if err := s.listener.Close(); !errors.Is(err, net.ErrClosed) {
		return err
	}
	return nil
}
