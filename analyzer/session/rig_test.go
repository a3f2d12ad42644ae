// SPDX-License-Identifier: Apache-2.0

package session

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"
	"google.golang.org/protobuf/proto"

	"github.com/attune-hpc/attune/analyzer/core"
	"github.com/attune-hpc/attune/analyzer/fold"
	"github.com/attune-hpc/attune/analyzer/report"
	"github.com/attune-hpc/attune/analyzer/session/calls"
	"github.com/attune-hpc/attune/internal/testing/patience"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// rig is a session with a clock that the test moves.
type rig struct {
	t       *testing.T
	session *Session
	account *fold.Account
	tape    tape
	ticks   chan time.Time
	wg      sync.WaitGroup

	mu      sync.Mutex
	now     time.Time
	entries []report.Entry
}

func newRig(t *testing.T, mode core.Mode) *rig { return newRigThatWaits(t, mode, time.Hour) }

// newRigThatWaits gives a tunlet so long for an answer. A short time is for tests
// of what follows: on a crowded machine every tunlet may be late.
func newRigThatWaits(t *testing.T, mode core.Mode, timeout time.Duration) *rig {
	return newRigWith(t, Config{Core: core.Config{Mode: mode}, callTimeout: timeout, Command: []string{"solver"}})
}

func newRigWith(t *testing.T, cfg Config) *rig {
	r := &rig{t: t, account: fold.NewAccount(), ticks: make(chan time.Time), now: time.Unix(1000, 0)}
	cfg.ID, cfg.now, cfg.ticks = "s1", r.time, r.ticks
	timeline := fold.NewTimeline(r.account, func(e report.Entry) {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.entries = append(r.entries, e)
	})
	cfg.Sinks = append([]Sink{&r.tape, r.account, timeline}, cfg.Sinks...)
	r.session = New(cfg)
	r.wg.Go(func() { r.session.Run(context.Background()) })
	t.Cleanup(func() {
		r.session.Close()
		r.wg.Wait()
		r.foldAgain()
	})
	return r
}

// tape keeps the frames of a session as a recording has them.
type tape struct {
	frames [][]byte
	err    error
}

func (t *tape) Take(f *attunev1.RecordingFrame) {
	data, err := proto.Marshal(f)
	t.frames, t.err = append(t.frames, data), cmp.Or(t.err, err)
}

// foldAgain makes the report from the frames as they were recorded, and compares it
// with that of the session, byte for byte.
func (r *rig) foldAgain() {
	again := fold.NewAccount()
	for _, data := range r.tape.frames {
		f := &attunev1.RecordingFrame{}
		if err := proto.Unmarshal(data, f); err != nil {
			r.t.Fatal(err)
		}
		again.Take(f)
	}
	var live, folded bytes.Buffer
	if err := errors.Join(r.tape.err, r.report().EncodeJSON(&live), again.Report(r.session.now()).EncodeJSON(&folded)); err != nil {
		r.t.Fatal(err)
	}
	if diff := gocmp.Diff(live.String(), folded.String()); diff != "" {
		r.t.Errorf("the report folded from the recording (-live +folded):\n%s", diff)
	}
}

func (r *rig) time() time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.now
}

// tick lets 50 ms pass, and waits until the session has seen it.
func (r *rig) tick() {
	r.mu.Lock()
	r.now = r.now.Add(50 * time.Millisecond)
	r.mu.Unlock()
	r.ticks <- r.now
	r.report()
}

// grow has the processes that there are become old enough for tunlets to hear of
// them.
func (r *rig) grow() {
	r.report() // they are known before time passes
	for range introduceAfter / (50 * time.Millisecond) {
		r.tick()
	}
}

// report returns the report, and thereby waits until the loop has done all that
// was posted before.
func (r *rig) report() *report.Report {
	r.t.Helper()
	rep, err := View(context.Background(), r.session, r.account.Report)
	if err != nil {
		r.t.Fatal(err)
	}
	return rep
}

// until waits for a condition on the report.
func (r *rig) until(what string, cond func(*report.Report) bool) *report.Report {
	r.t.Helper()
	deadline := time.Now().Add(patience.Limit)
	for {
		rep := r.report()
		if cond(rep) {
			return rep
		}
		if time.Now().After(deadline) {
			r.t.Fatalf("%s: not so: %+v", what, rep)
		}
	}
}

// link is a management channel that keeps what it was sent.
type link struct {
	mu   sync.Mutex
	sent []*attunev1.ManageResponse
	full bool
}

func (l *link) Send(m *attunev1.ManageResponse) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.full {
		return false
	}
	l.sent = append(l.sent, m)
	return true
}

// kinds returns the kinds of requests sent.
func (l *link) kinds() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var out []string
	for _, m := range l.sent {
		out = append(out, fmt.Sprintf("%T", m.GetRequest())[len("*attunev1.ManageResponse_"):])
	}
	return out
}

// wanted returns what was wanted of the controller, whole each time.
func (l *link) wanted() (all []*attunev1.Want) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, m := range l.sent {
		if w := m.GetWant(); w != nil {
			all = append(all, w)
		}
	}
	return all
}

// last returns the last want.
func (l *link) last() *attunev1.Want {
	all := l.wanted()
	return all[len(all)-1]
}

// indexes lists the points of the last want.
func (l *link) indexes() (points []uint32) {
	for _, p := range l.last().GetPoints() {
		points = append(points, p.GetIndex())
	}
	return points
}

// connect connects a controller with a process each of the given handles.
func (r *rig) connect(id string, handles ...uint64) *link {
	l := &link{}
	r.session.ControllerConnected(&attunev1.ControllerHello{ControllerId: id}, l)
	for _, h := range handles {
		r.session.Publish(id, &attunev1.PublishRequest{Event: &attunev1.PublishRequest_ProcessStarted{ProcessStarted: &attunev1.Process{
			Handle: h, Identity: &attunev1.ProcessIdentity{Pid: int32(h)}, Executable: "/bin/app",
		}}})
	}
	return l
}

// scripted is a tunlet whose reactions the test gives, over real gRPC.
type scripted struct {
	attunev1.UnimplementedTunletServiceServer
	name    string
	wants   []*attunev1.SampleInterest // reaction to each process
	service attunev1.TunletServiceClient
	block   chan struct{} // HandleEvents waits for it, if there is one
	late    bool          // HandleEvents says that its time is over
	started *attunev1.Reaction

	mu     sync.Mutex
	events []*attunev1.HandleEventsRequest
	points []*attunev1.PointChangedRequest
	told   []string
	killed string
}

func newScripted(t *testing.T, name string, started *attunev1.Reaction) *scripted {
	s := &scripted{name: name, started: started}
	s.service = dial(t, name, s)
	return s
}

// dial serves a tunlet over gRPC, and returns its client.
func dial(t *testing.T, name string, s attunev1.TunletServiceServer) attunev1.TunletServiceClient {
	lis := bufconn.Listen(1 << 16)
	server := grpc.NewServer()
	attunev1.RegisterTunletServiceServer(server, s)
	var wg sync.WaitGroup
	wg.Go(func() { _ = server.Serve(lis) })
	conn, err := grpc.NewClient("passthrough:"+name, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(context.Context, string) (net.Conn, error) { return lis.Dial() }))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = conn.Close()
		server.Stop()
		wg.Wait()
	})
	return attunev1.NewTunletServiceClient(conn)
}

func (s *scripted) Info() *attunev1.DescribeResponse {
	return &attunev1.DescribeResponse{Name: s.name, Knobs: []*attunev1.Knob{{Name: "k"}}}
}

func (s *scripted) Service() attunev1.TunletServiceClient { return s.service }

func (s *scripted) Kill(reason string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.killed = reason
}

func (s *scripted) tell(what string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.told = append(s.told, what)
}

func (s *scripted) ApplicationStarted(_ context.Context, r *attunev1.ApplicationStartedRequest) (*attunev1.ApplicationStartedResponse, error) {
	s.tell("application " + r.GetApplication().GetSessionId() + " " + r.GetApplication().GetMode())
	return &attunev1.ApplicationStartedResponse{Reaction: s.started}, nil
}

func (s *scripted) ProcessStarted(_ context.Context, r *attunev1.ProcessStartedRequest) (*attunev1.ProcessStartedResponse, error) {
	s.tell(fmt.Sprintf("process %d pid %d update %v", r.GetProcess().GetHandle(), r.GetProcess().GetIdentity().GetPid(), r.GetUpdate()))
	return &attunev1.ProcessStartedResponse{Reaction: &attunev1.Reaction{Interests: s.wants}}, nil
}

func (s *scripted) ProcessEnded(_ context.Context, r *attunev1.ProcessEndedRequest) (*attunev1.ProcessEndedResponse, error) {
	s.tell(fmt.Sprintf("ended %d", r.GetEnded().GetProcess()))
	return &attunev1.ProcessEndedResponse{}, nil
}

func (s *scripted) ProposalChanged(_ context.Context, r *attunev1.ProposalChangedRequest) (*attunev1.ProposalChangedResponse, error) {
	told := r.GetProposalId() + " " + r.GetState().String()
	for _, c := range r.GetEarlier().GetChanges() {
		told += fmt.Sprintf(" %s@%d", c.GetKnob(), c.GetProcess())
	}
	s.tell(told)
	return &attunev1.ProposalChangedResponse{}, nil
}

func (s *scripted) HandleEvents(_ context.Context, r *attunev1.HandleEventsRequest) (*attunev1.HandleEventsResponse, error) {
	if s.block != nil {
		<-s.block
	}
	if s.late {
		return nil, status.Error(codes.DeadlineExceeded, "late")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.events = append(s.events, r)
	return &attunev1.HandleEventsResponse{}, nil
}

func (s *scripted) PointChanged(_ context.Context, r *attunev1.PointChangedRequest) (*attunev1.PointChangedResponse, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.points = append(s.points, r)
	return &attunev1.PointChangedResponse{}, nil
}

func (s *scripted) ApplicationEnded(context.Context, *attunev1.ApplicationEndedRequest) (*attunev1.ApplicationEndedResponse, error) {
	s.tell("application ended")
	return &attunev1.ApplicationEndedResponse{}, nil
}

// get reads something of the tunlet under its lock.
func get[T any](s *scripted, f func() T) T {
	s.mu.Lock()
	defer s.mu.Unlock()
	return f()
}

func hook(id, name string) *attunev1.MeasurePoint {
	return &attunev1.MeasurePoint{Id: id, Target: &attunev1.MeasurePoint_Hook{Hook: name}, Delivery: attunev1.Delivery_DELIVERY_EVENT}
}

// settle waits until the tunlet has answered all calls queued so far.
func (r *rig) settle(names ...string) {
	r.t.Helper()
	for _, name := range names {
		answered := make(chan struct{})
		r.session.post(func() {
			r.session.tunlets.running[name].worker.Push(calls.Call{
				Method: "test", Do: func(context.Context) (*attunev1.Reaction, error) { return nil, nil },
				Done: func() { r.session.post(func() { close(answered) }) },
			})
		})
		select {
		case <-answered:
		case <-time.After(patience.Limit):
			r.t.Fatal("the tunlet does not answer")
		}
	}
}

// records publishes one record for each of the points.
func (r *rig) records(id string, process uint64, points ...uint16) {
	var data []byte
	for _, p := range points {
		data = attunev1.AppendRecord(data, attunev1.Record{Point: p})
	}
	r.session.Publish(id, &attunev1.PublishRequest{Event: &attunev1.PublishRequest_Records{Records: &attunev1.RecordBatch{Process: process, Records: data, RecordCount: uint64(len(points))}}})
}

// react does what a tunlet wants, as if it had answered a call with it.
func (r *rig) react(tunlet string, reaction *attunev1.Reaction) {
	r.session.post(func() { r.session.tunlets.react(r.session.tunlets.running[tunlet], reaction) })
}

// ask says all that somebody wants.
func (r *rig) ask(name string, sink Sink, want *attunev1.Want) {
	r.t.Helper()
	if err := r.session.Ask(r.t.Context(), name, sink, func() (*attunev1.Want, error) { return want, nil }); err != nil {
		r.t.Fatal(err)
	}
}

// recordsOf counts the records that a tunlet got.
func recordsOf(s *scripted) int {
	return get(s, func() int {
		n := 0
		for _, e := range s.events {
			for _, rec := range e.GetRecords() {
				n += len(rec.GetRecords()) / attunev1.RecordSize
			}
		}
		return n
	})
}
