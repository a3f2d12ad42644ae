// SPDX-License-Identifier: Apache-2.0

package session

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/test/bufconn"

	"github.com/attune-hpc/attune/analyzer/core"
	"github.com/attune-hpc/attune/analyzer/report"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const patience = 20 * time.Second

// rig is a session with a clock that the test moves.
type rig struct {
	t       *testing.T
	session *Session
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
	return newRigWith(t, Config{Core: core.Config{Mode: mode}, CallTimeout: timeout, Command: []string{"solver"}})
}

func newRigWith(t *testing.T, cfg Config) *rig {
	r := &rig{t: t, ticks: make(chan time.Time), now: time.Unix(1000, 0)}
	cfg.ID, cfg.Now, cfg.Ticks = "s1", r.time, r.ticks
	cfg.Entry = func(e report.Entry) {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.entries = append(r.entries, e)
	}
	r.session = New(cfg)
	r.wg.Go(func() { r.session.Run(context.Background()) })
	t.Cleanup(func() {
		r.session.Close()
		r.wg.Wait()
	})
	return r
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

// report returns the report, and thereby waits until the loop has done all that
// was posted before.
func (r *rig) report() *report.Report {
	r.t.Helper()
	rep, err := r.session.Report(context.Background())
	if err != nil {
		r.t.Fatal(err)
	}
	return rep
}

// until waits for a condition on the report.
func (r *rig) until(what string, cond func(*report.Report) bool) *report.Report {
	r.t.Helper()
	deadline := time.Now().Add(patience)
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
	started *attunev1.Reaction

	mu     sync.Mutex
	events []*attunev1.HandleEventsRequest
	points []*attunev1.PointChangedRequest
	told   []string
	killed string
}

func newScripted(t *testing.T, name string, started *attunev1.Reaction) *scripted {
	s := &scripted{name: name, started: started}
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
	s.service = attunev1.NewTunletServiceClient(conn)
	return s
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

func (s *scripted) HandleEvents(_ context.Context, r *attunev1.HandleEventsRequest) (*attunev1.HandleEventsResponse, error) {
	if s.block != nil {
		<-s.block
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
			r.session.tunlets[name].worker.push(call{
				method: "test", do: func(context.Context) (*attunev1.Reaction, error) { return nil, nil },
				done: func(error) { r.session.post(func() { close(answered) }) },
			})
		})
		select {
		case <-answered:
		case <-time.After(patience):
			r.t.Fatal("the tunlet does not answer")
		}
	}
}

// TestPointsAreShared has two tunlets ask for the same point.
func TestPointsAreShared(t *testing.T) {
	r := newRig(t, core.ModeTune)
	first := r.connect("ac1", 7)
	a := newScripted(t, "a", &attunev1.Reaction{AddPoints: []*attunev1.MeasurePoint{hook("mine", "malloc"), hook("none", "")}})
	a.started.AddPoints[1].Target = nil
	b := newScripted(t, "b", &attunev1.Reaction{AddPoints: []*attunev1.MeasurePoint{hook("same", "malloc"), hook("other", "free")}})
	r.session.TunletReady(a)
	r.settle("a")
	r.session.TunletReady(b)
	r.settle("b")
	if diff := cmp.Diff([]string{"SetSampling", "AddPoint", "AddPoint"}, first.kinds()); diff != "" {
		t.Fatal(diff)
	}
	second := r.connect("ac2", 7)
	r.session.Manage("ac1", &attunev1.ManageRequest{Message: &attunev1.ManageRequest_Point{Point: &attunev1.PointStatus{
		Point: 1, Process: 7, State: attunev1.PointState_POINT_STATE_PLACED, Mechanism: "hook"}}})
	r.settle("a", "b")
	if diff := cmp.Diff([]string{"SetSampling", "AddPoint", "AddPoint"}, second.kinds()); diff != "" {
		t.Errorf("a later controller: %s", diff)
	}
	names := get(a, func() []string {
		var out []string
		for _, p := range a.points {
			out = append(out, fmt.Sprintf("%s %s %d", p.GetPointId(), p.GetStatus().GetState(), p.GetStatus().GetProcess()))
		}
		return out
	})
	if diff := cmp.Diff([]string{"none POINT_STATE_REFUSED 0", "mine POINT_STATE_PLACED 1"}, names); diff != "" {
		t.Errorf("a was told: %s", diff)
	}
	r.records("ac1", 7, 1, 1, 2, 1, 9)
	r.settle("a", "b")
	if got := [2]int{recordsOf(a), recordsOf(b)}; got != [2]int{3, 4} {
		t.Errorf("records delivered %v, want 3 to a, 4 to b", got)
	}
	r.session.TunletGone("a", "test", true)
	r.session.TunletGone("b", "test", true)
	rep := r.report()
	if got := first.kinds()[3:]; !slices.Equal(got, []string{"RemovePoint", "RemovePoint"}) {
		t.Errorf("after both tunlets had gone: %v", got)
	}
	if len(rep.Points) != 3 || rep.Points[0].State != "placed" || rep.Events.Records != 5 {
		t.Errorf("points %+v", rep.Points)
	}
}

// A tunlet that wants no samples of a process gets none, and the others do.
func TestSamplesGoToThoseThatWantThem(t *testing.T) {
	r := newRig(t, core.ModeTune)
	all, none := newScripted(t, "all", nil), newScripted(t, "none", nil)
	none.wants = []*attunev1.SampleInterest{{Process: 1}, {Process: 99}} // one that is not there, too
	r.session.TunletReady(all)
	r.session.TunletReady(none)
	r.connect("ac1", 7)
	r.report() // the process is known before time passes
	r.tick()
	r.settle("all", "none")
	r.session.Publish("ac1", &attunev1.PublishRequest{Event: &attunev1.PublishRequest_Samples{
		Samples: &attunev1.SampleBatch{UnixNano: 1, Samples: []*attunev1.Sample{{Process: 7}}},
	}})
	r.settle("all", "none")
	for tunlet, want := range map[*scripted]int{all: 1, none: 0} {
		if got := get(tunlet, func() int { return len(tunlet.events) }); got != want {
			t.Errorf("%s was woken %d times, want %d", tunlet.name, got, want)
		}
	}
}

// records publishes one record for each of the points.
func (r *rig) records(id string, process uint64, points ...uint16) {
	data := make([]byte, recordSize*len(points))
	for i, p := range points {
		binary.LittleEndian.PutUint16(data[i*recordSize+recordPoint:], p)
	}
	r.session.Publish(id, &attunev1.PublishRequest{Event: &attunev1.PublishRequest_Records{Records: &attunev1.RecordBatch{Process: process, Records: data}}})
}

// recordsOf counts the records that a tunlet got.
func recordsOf(s *scripted) int {
	return get(s, func() int {
		n := 0
		for _, e := range s.events {
			for _, rec := range e.GetRecords() {
				n += len(rec.GetRecords()) / recordSize
			}
		}
		return n
	})
}

// TestNewsInOrder checks what a tunlet that comes late is told. It never hears
// of a process that ended before it was worth a call, and of the application's
// end only after all that a controller delivers while it stops.
func TestNewsInOrder(t *testing.T) {
	r := newRig(t, core.ModeAdvise)
	r.connect("ac1", 5)
	r.connect("ac2", 5)
	r.session.Publish("ac1", &attunev1.PublishRequest{Event: &attunev1.PublishRequest_ProcessEnded{ProcessEnded: &attunev1.ProcessEnded{Process: 5}}})
	r.report() // all of that has been heard
	r.tick()   // the other one is old enough now
	r.report()
	a := newScripted(t, "a", nil)
	r.session.TunletReady(a)
	if err := r.session.Settle(context.Background()); err != nil {
		t.Fatal(err)
	}
	r.session.Publish("ac2", &attunev1.PublishRequest{Event: &attunev1.PublishRequest_ProcessChanged{ProcessChanged: &attunev1.Process{
		Handle: 5, Identity: &attunev1.ProcessIdentity{Pid: 5}, ExecutableSha256: "00"}}})
	r.session.Publish("ac2", &attunev1.PublishRequest{Event: &attunev1.PublishRequest_ProcessEnded{ProcessEnded: &attunev1.ProcessEnded{Process: 5}}})
	if err := r.session.Finish(context.Background()); err != nil {
		t.Fatal(err)
	}
	want := []string{"application s1 advise", "process 2 pid 5 update false", "process 2 pid 5 update true", "ended 2", "application ended"}
	if diff := cmp.Diff(want, get(a, func() []string { return a.told })); diff != "" {
		t.Error(diff)
	}
}

// TestSlowTunletLosesData blocks a tunlet: data is dropped and counted, news is
// not, and the loop goes on.
func TestSlowTunletLosesData(t *testing.T) {
	r := newRigThatWaits(t, core.ModeTune, 200*time.Millisecond)
	r.connect("ac1", 1)
	a := newScripted(t, "a", nil)
	a.block = make(chan struct{})
	r.session.TunletReady(a)
	const batches = 3 * maxData
	for range batches {
		r.session.Publish("ac1", &attunev1.PublishRequest{Event: &attunev1.PublishRequest_Samples{Samples: &attunev1.SampleBatch{Samples: []*attunev1.Sample{{Process: 1}}}}})
		r.report() // one by one, so that nothing is lost at the inbox
	}
	rep := r.until("hung", func(*report.Report) bool { return get(a, func() bool { return a.killed != "" }) })
	if rep.Events.Samples != batches || rep.Events.Lost.Tunlet < maxData || rep.Events.Lost.Analyzer != 0 {
		t.Errorf("events %+v", rep.Events)
	}
	if got := get(a, func() string { return a.killed }); got != "no answer to HandleEvents within 200ms" {
		t.Errorf("killed because %q", got)
	}
	close(a.block)
	r.session.TunletGone("a", "killed", true)
	if after := r.report(); after.Events.Lost.Tunlet != rep.Events.Lost.Tunlet {
		t.Errorf("lost %d, before the tunlet's end %d", after.Events.Lost.Tunlet, rep.Events.Lost.Tunlet)
	}
}

// TestNewsOverflow lets more news pile up than a tunlet may.
func TestNewsOverflow(t *testing.T) {
	r := newRig(t, core.ModeTune)
	a := newScripted(t, "a", nil)
	a.block = make(chan struct{})
	defer close(a.block)
	r.session.TunletReady(a)
	r.connect("ac1", 1)
	r.session.Publish("ac1", &attunev1.PublishRequest{Event: &attunev1.PublishRequest_Samples{Samples: &attunev1.SampleBatch{}}})
	r.session.post(func() {
		for i := range maxNews + 2 {
			r.session.tunlets["a"].processStarted(&attunev1.Process{Handle: uint64(i)}, true)
		}
	})
	r.until("killed", func(*report.Report) bool {
		return get(a, func() bool { return a.killed == "it does not keep up with what it is told" })
	})
}

// TestInboxOverflow blocks the loop: data is dropped and counted, the publisher
// is not held up, and who wants records is told before the process' end.
func TestInboxOverflow(t *testing.T) {
	r := newRig(t, core.ModeTune)
	wants := newScripted(t, "wants", &attunev1.Reaction{AddPoints: []*attunev1.MeasurePoint{hook("p", "malloc")}})
	r.session.TunletReady(wants)
	r.connect("ac1", 1)
	r.report() // the process is known before time passes
	r.tick()
	r.settle("wants")
	gate := make(chan struct{})
	r.session.post(func() { <-gate })
	for range 2 * inboxSize {
		r.records("ac1", 1, 1, 2)
	}
	big := make([]byte, inboxBytes)
	r.session.Publish("ac1", &attunev1.PublishRequest{Event: &attunev1.PublishRequest_Records{Records: &attunev1.RecordBatch{Process: 1, Records: big}}})
	close(gate)
	rep := r.report()
	total := uint64(2*2*inboxSize + len(big)/recordSize)
	if e := rep.Events; e.Records+e.Lost.Analyzer != total || e.Records < inboxSize || e.Lost.Analyzer < uint64(len(big)/recordSize) {
		t.Errorf("events %+v, want %d in all", e, total)
	}
	r.session.Publish("ac1", &attunev1.PublishRequest{Event: &attunev1.PublishRequest_ProcessEnded{ProcessEnded: &attunev1.ProcessEnded{Process: 1}}})
	r.report()
	r.settle("wants")
	if lost, e := lostOf(wants), r.report().Events.Lost; lost != e.Analyzer+e.Tunlet {
		t.Errorf("the tunlet was told of %d lost records, want %d and %d", lost, e.Analyzer, e.Tunlet)
	}
}

// TestUnreachableController has a management channel that takes nothing.
func TestUnreachableController(t *testing.T) {
	r := newRig(t, core.ModeTune)
	l := r.connect("ac1", 1)
	l.full = true
	baseline := []*attunev1.ObjectiveSample{{Value: 1, UnixNano: r.time().UnixNano()}}
	a := newScripted(t, "a", &attunev1.Reaction{Objectives: baseline, Proposals: []*attunev1.Proposal{{Id: "p", Changes: []*attunev1.Change{{
		Knob: "k", Process: 1, Action: &attunev1.Action{Kind: &attunev1.Action_Setting{Setting: &attunev1.NamedSetting{Name: "k"}}},
	}}}}})
	r.session.TunletReady(a)
	r.settle("a")
	for range 10 {
		r.tick()
	}
	rep := r.report()
	if len(rep.Changes) != 1 || rep.Changes[0].Verdict != report.VerdictFailed || rep.Changes[0].Reason != "the controller cannot be reached" {
		t.Errorf("changes %+v", rep.Changes)
	}
}

// TestLeasesAreRenewed counts renewals over three seconds.
func TestLeasesAreRenewed(t *testing.T) {
	r := newRig(t, core.ModeTune)
	l := r.connect("ac1")
	for range 60 {
		r.tick()
	}
	r.report()
	if diff := cmp.Diff([]string{"Renew", "Renew", "Renew"}, l.kinds()); diff != "" {
		t.Error(diff)
	}
}

// TestManyProcesses lets a job start more processes than the report lists.
func TestManyProcesses(t *testing.T) {
	r := newRig(t, core.ModeTune)
	r.connect("ac1")
	const n = maxProcesses + 500
	for h := uint64(1); h <= n; h++ {
		r.session.Publish("ac1", &attunev1.PublishRequest{Event: &attunev1.PublishRequest_ProcessStarted{ProcessStarted: &attunev1.Process{Handle: h}}})
		r.session.Publish("ac1", &attunev1.PublishRequest{Event: &attunev1.PublishRequest_ProcessEnded{ProcessEnded: &attunev1.ProcessEnded{Process: h}}})
	}
	rep := r.report()
	if len(rep.Processes) != maxProcesses || len(rep.Remarks) != 1 || rep.Remarks[0].Text != "500 further processes that have ended are not listed" {
		t.Errorf("%d processes, remarks %+v", len(rep.Processes), rep.Remarks)
	}
}

// TestFinishIsBounded ends a session whose tunlet hangs.
func TestFinishIsBounded(t *testing.T) {
	r := newRig(t, core.ModeTune)
	a := newScripted(t, "a", nil)
	a.block = make(chan struct{})
	defer close(a.block)
	r.session.TunletReady(a)
	r.connect("ac1", 1)
	r.session.Publish("ac1", &attunev1.PublishRequest{Event: &attunev1.PublishRequest_Samples{Samples: &attunev1.SampleBatch{}}})
	ctx, cancel := context.WithTimeout(context.Background(), time.Millisecond)
	defer cancel()
	if err := r.session.Finish(ctx); err == nil {
		t.Error("Finish did not tell that it was cut short")
	}
	r.session.Close()
	r.wg.Wait()
	if err := r.session.Finish(context.Background()); !errors.Is(err, ErrEnded) {
		t.Errorf("Finish after the end: %v", err)
	}
	if rep := r.report(); rep.Mode != "tune" {
		t.Errorf("report after the end: %+v", rep)
	}
}
