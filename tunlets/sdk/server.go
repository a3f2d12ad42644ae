// SPDX-License-Identifier: Apache-2.0

package sdk

import (
	"context"
	"fmt"
	"path"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// ServerOptions configure a server. The zero value is usable.
type ServerOptions struct {
	// Crashed is called once, when the tunlet panics, with what happened and
	// the stack. Serve ends the process there. nil: nothing happens beyond the
	// error that every call then returns.
	Crashed func(report string)
}

// server is the shim between the proto and a tunlet: it only converts, keeps
// order, and turns panics into errors.
type server struct {
	attunev1.UnimplementedTunletServiceServer

	newTunlet func() Tunlet
	opts      ServerOptions

	// turn holds one token, which the call that runs has: calls reach the
	// tunlet one at a time, and a call whose caller gave up while it waited is
	// never made. It guards everything below.
	turn chan struct{}

	tunlet  Tunlet
	unfit   error // why the tunlet is not called at all
	options map[string]string
	inUse   bool // the tunlet has seen a session
	now     time.Time
	// explains says that the session asks for explanations.
	explains bool
	said     map[string]bool   // see Host
	names    map[uint32]string // point index to the tunlet's id; nil: there was none yet
	ledger   ledger
	crash    error
}

// NewServer wraps a tunlet as the service that the Analyzer calls. newTunlet
// is called at the first call, and again for each further session. Safe for
// use by several goroutines: calls are made one at a time.
func NewServer(newTunlet func() Tunlet, opts ServerOptions) attunev1.TunletServiceServer {
	return newServer(newTunlet, opts)
}

func newServer(newTunlet func() Tunlet, opts ServerOptions) *server {
	return &server{
		newTunlet: newTunlet, opts: opts, said: map[string]bool{},
		turn: make(chan struct{}, 1),
	}
}

// unimplemented answers a call that the tunlet is not interested in.
func unimplemented(what string) error {
	return status.Errorf(codes.Unimplemented, "tunlet has no %s", what)
}

// unheard answers a call that the tunlet is not interested in, but that the
// server must go on hearing, because what is missing from aggregates is told by
// it.
func (s *server) unheard(what string) error {
	if _, ok := s.tunlet.(AggregateHandler); ok {
		return nil
	}
	return unimplemented(what)
}

// call runs f as the only call at the time, with panics turned into an error
// that the tunlet never recovers from.
func (s *server) call(ctx context.Context, name string, f func() error) (err error) {
	select {
	case s.turn <- struct{}{}:
	case <-ctx.Done():
		return status.FromContextError(ctx.Err()).Err()
	}
	defer func() { <-s.turn }()
	if s.crash != nil {
		return s.crash
	}
	if ctx.Err() != nil {
		return status.FromContextError(ctx.Err()).Err()
	}
	defer func() {
		if p := recover(); p != nil {
			err = s.crashed(name, p)
		}
	}()
	if s.tunlet == nil {
		s.begin()
	}
	if s.unfit != nil {
		return s.unfit
	}
	return f()
}

// begin makes a tunlet, and finds what is wrong with its methods.
func (s *server) begin() {
	s.tunlet = s.newTunlet()
	s.unfit = misfit(s.tunlet, optional)
	if f, is := s.tunlet.(frame); is && s.unfit == nil {
		s.unfit = misfit(f.Framed())
	}
}

func (s *server) crashed(name string, p any) error {
	s.crash = status.Errorf(codes.Internal, "tunlet panicked in %s%s: %v", name, panicPlace(), p)
	if s.opts.Crashed != nil {
		s.opts.Crashed(fmt.Sprintf("panic in %s: %v\n\n%s", name, p, debug.Stack()))
	}
	return s.crash
}

// panicPlace is where the tunlet's code panicked, for a message; empty: it cannot be told.
// Called by the function that recovers.
func panicPlace() string {
	callers := make([]uintptr, 64)
	frames := runtime.CallersFrames(callers[:runtime.Callers(1, callers)])
	panicked := false
	for {
		f, more := frames.Next()
		inRuntime := strings.HasPrefix(f.Function, "runtime.") || strings.HasPrefix(f.Function, "internal/runtime/")
		if panicked && !inRuntime && f.File != "" {
			return fmt.Sprintf(" at %s:%d", path.Base(f.File), f.Line)
		}
		panicked = panicked || inRuntime && strings.Contains(f.Function, "panic")
		if !more {
			return ""
		}
	}
}

// host makes the Host of one call. A time before the last one known, or none
// (unixNano 0), leaves the clock where it is.
func (s *server) host(unixNano int64) (*Host, *attunev1.Reaction) {
	if t := time.Unix(0, unixNano); unixNano > 0 && t.After(s.now) {
		s.now = t
	}
	r := &attunev1.Reaction{}
	return &Host{now: s.now, reaction: r, ledger: &s.ledger, explains: s.explains, said: s.said}, r
}

func (s *server) Describe(ctx context.Context, r *attunev1.DescribeRequest) (out *attunev1.DescribeResponse, err error) {
	err = s.call(ctx, "Describe", func() error {
		if v := r.GetApiVersions(); len(v) > 0 && !slices.Contains(v, APIVersion) {
			return status.Errorf(codes.FailedPrecondition,
				"tunlet speaks API version %s, the analyzer %v: rebuild the tunlet with a matching sdk", APIVersion, v)
		}
		out = s.tunlet.Describe().proto()
		return nil
	})
	return out, err
}

func (s *server) Configure(ctx context.Context, r *attunev1.ConfigureRequest) (out *attunev1.ConfigureResponse, err error) {
	err = s.call(ctx, "Configure", func() error {
		s.options = r.GetOptions()
		out = &attunev1.ConfigureResponse{}
		if err := s.configure(); err != nil {
			out.Error = err.Error()
		}
		return nil
	})
	return out, err
}

// configure hands over the options, checked and completed.
func (s *server) configure() (err error) {
	if s.options, err = SettleOptions(s.tunlet.Describe().Options, s.options); err != nil {
		return err
	}
	if c, ok := s.tunlet.(Configurer); ok {
		return c.Configure(s.options)
	}
	return nil
}

// renew replaces a tunlet that has seen a session by a new one.
func (s *server) renew() error {
	s.names, s.ledger, s.said = nil, ledger{}, map[string]bool{}
	if !s.inUse {
		s.inUse = true
		return nil
	}
	if s.begin(); s.unfit != nil {
		return s.unfit
	}
	if s.options == nil {
		return nil // it was never configured
	}
	if err := s.configure(); err != nil {
		return status.Errorf(codes.InvalidArgument, "configure: %v", err)
	}
	return nil
}

func (s *server) ApplicationStarted(ctx context.Context, r *attunev1.ApplicationStartedRequest) (out *attunev1.ApplicationStartedResponse, err error) {
	err = s.call(ctx, "ApplicationStarted", func() error {
		s.now, s.explains = time.Time{}, r.GetApplication().GetExplain()
		h, reaction := s.host(r.GetUnixNano())
		if err := s.renew(); err != nil {
			return err
		}
		o, ok := s.tunlet.(ApplicationStartObserver)
		if !ok {
			return unimplemented("ApplicationStarted")
		}
		a := r.GetApplication()
		o.ApplicationStarted(h, Application{
			SessionID: a.GetSessionId(), Command: a.GetCommand(), Mode: a.GetMode(),
			TickPeriod: time.Duration(a.GetTickNanos()),
		})
		out = &attunev1.ApplicationStartedResponse{Reaction: reaction}
		return nil
	})
	return out, err
}

func (s *server) ApplicationEnded(ctx context.Context, r *attunev1.ApplicationEndedRequest) (out *attunev1.ApplicationEndedResponse, err error) {
	err = s.call(ctx, "ApplicationEnded", func() error {
		o, ok := s.tunlet.(ApplicationEndObserver)
		if !ok {
			return unimplemented("ApplicationEnded")
		}
		o.ApplicationEnded(time.Unix(0, r.GetUnixNano()))
		out = &attunev1.ApplicationEndedResponse{}
		return nil
	})
	return out, err
}

func (s *server) ProcessStarted(ctx context.Context, r *attunev1.ProcessStartedRequest) (out *attunev1.ProcessStartedResponse, err error) {
	err = s.call(ctx, "ProcessStarted", func() error {
		s.ledger.started(r.GetProcess())
		o, ok := s.tunlet.(ProcessStartObserver)
		if !ok {
			out = &attunev1.ProcessStartedResponse{}
			return s.unheard("ProcessStarted")
		}
		h, reaction := s.host(0)
		o.ProcessStarted(h, processFrom(r.GetProcess(), r.GetUpdate()))
		out = &attunev1.ProcessStartedResponse{Reaction: reaction}
		return nil
	})
	return out, err
}

func (s *server) ProcessEnded(ctx context.Context, r *attunev1.ProcessEndedRequest) (out *attunev1.ProcessEndedResponse, err error) {
	err = s.call(ctx, "ProcessEnded", func() error {
		s.ledger.ended(Handle(r.GetEnded().GetProcess()))
		o, ok := s.tunlet.(ProcessEndObserver)
		if !ok {
			out = &attunev1.ProcessEndedResponse{}
			return s.unheard("ProcessEnded")
		}
		h, reaction := s.host(0)
		o.ProcessEnded(h, endFrom(r.GetEnded()))
		out = &attunev1.ProcessEndedResponse{Reaction: reaction}
		return nil
	})
	return out, err
}
