// SPDX-License-Identifier: Apache-2.0

package sdk_test

import (
	"context"
	"errors"
	"regexp"
	"slices"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
	"github.com/attune-hpc/attune/tunlets/sdk"
)

// bare has nothing but a description.
type bare struct{}

func (bare) Describe() sdk.Description { return sdk.Description{Name: "bare"} }

func TestUnimplementedMeansNotInterested(t *testing.T) {
	s := sdk.NewServer(func() sdk.Tunlet { return bare{} }, sdk.ServerOptions{})
	ctx := t.Context()
	calls := map[string]func() error{
		"ApplicationStarted": func() error { _, err := s.ApplicationStarted(ctx, nil); return err },
		"ProcessStarted":     func() error { _, err := s.ProcessStarted(ctx, nil); return err },
		"ProcessEnded":       func() error { _, err := s.ProcessEnded(ctx, nil); return err },
		"HandleEvents":       func() error { _, err := s.HandleEvents(ctx, nil); return err },
		"Tick":               func() error { _, err := s.Tick(ctx, nil); return err },
		"Evaluate":           func() error { _, err := s.Evaluate(ctx, nil); return err },
		"ProposalChanged":    func() error { _, err := s.ProposalChanged(ctx, nil); return err },
		"ApplicationEnded":   func() error { _, err := s.ApplicationEnded(ctx, nil); return err },
	}
	for name, call := range calls {
		t.Run(name, func(t *testing.T) {
			if err := call(); status.Code(err) != codes.Unimplemented {
				t.Errorf("error %v, want Unimplemented", err)
			}
		})
	}
}

// ticking calls a function at every tick.
type ticking struct {
	bare
	tick func(h *sdk.Host)
}

func (t ticking) Tick(h *sdk.Host) { t.tick(h) }

func TestPanicBecomesAnErrorForGood(t *testing.T) {
	var reports []string
	s := sdk.NewServer(
		func() sdk.Tunlet { return ticking{tick: func(*sdk.Host) { panic("out of ideas") }} },
		sdk.ServerOptions{Crashed: func(r string) { reports = append(reports, r) }})
	for range 2 {
		_, err := s.Tick(t.Context(), &attunev1.TickRequest{})
		if status.Code(err) != codes.Internal || !regexp.MustCompile(`panicked in Tick at server_test\.go:\d+: out of ideas`).MatchString(err.Error()) {
			t.Errorf("error %v, want the panic", err)
		}
	}
	if _, err := s.Describe(t.Context(), nil); status.Code(err) != codes.Internal {
		t.Errorf("describe after a panic: %v, want the panic", err)
	}
	if len(reports) != 1 || !strings.Contains(reports[0], "server_test.go") {
		t.Errorf("reports %q, want one with the stack", reports)
	}
}

func TestCallsAreMadeOneAtATime(t *testing.T) {
	entered, leave := make(chan int), make(chan bool)
	running := 0
	s := sdk.NewServer(func() sdk.Tunlet {
		return ticking{tick: func(*sdk.Host) {
			running++
			entered <- running
			<-leave
			running--
		}}
	}, sdk.ServerOptions{})
	done := make(chan error)
	for range 3 {
		go func() { _, err := s.Tick(context.Background(), &attunev1.TickRequest{}); done <- err }()
	}
	for range 3 {
		if n := <-entered; n != 1 {
			t.Errorf("%d calls at a time", n)
		}
		leave <- true
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

func TestCallGivenUpIsNeverMade(t *testing.T) {
	entered, leave := make(chan bool), make(chan bool)
	calls := 0
	s := sdk.NewServer(func() sdk.Tunlet {
		return ticking{tick: func(*sdk.Host) { calls++; entered <- true; <-leave }}
	}, sdk.ServerOptions{})
	first := make(chan error)
	go func() { _, err := s.Tick(context.Background(), nil); first <- err }()
	<-entered
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.Tick(ctx, nil); status.Code(err) != codes.Canceled {
		t.Errorf("error %v, want Canceled", err)
	}
	leave <- true
	if err := <-first; err != nil || calls != 1 {
		t.Errorf("error %v, %d calls, want one", err, calls)
	}
}

// listener records what it hears.
type listener struct {
	options map[string]string
	heard   []sdk.Record
	times   []int64
}

func (*listener) Describe() sdk.Description {
	return sdk.Description{Name: "listener", Options: []sdk.Option{{Name: "a", Type: sdk.TextOption}, {Name: "bad", Type: sdk.TextOption}}}
}

func (l *listener) Configure(o map[string]string) error {
	l.options = o
	if o["bad"] != "" {
		return errors.New("bad option")
	}
	return nil
}
func (l *listener) PointChanged(*sdk.Host, sdk.PointChange) {}
func (l *listener) HandleRecords(_ *sdk.Host, r sdk.Records) {
	for rec := range r.All() {
		l.heard = append(l.heard, rec)
		l.times = append(l.times, r.Time(rec).UnixNano())
	}
}

func pack(records ...sdk.Record) (out []byte) {
	for _, r := range records {
		out = attunev1.AppendRecord(out, attunev1.Record{
			Monotonic: r.Monotonic, Point: 7, Flags: r.Flags, Thread: uint32(r.Thread), Value: r.Value, Extra: r.Extra,
		})
	}
	return out
}

func TestRecordsCarryTheTunletsNames(t *testing.T) {
	l := &listener{}
	s := sdk.NewServer(func() sdk.Tunlet { return l }, sdk.ServerOptions{})
	ctx := t.Context()
	if _, err := s.PointChanged(ctx, &attunev1.PointChangedRequest{
		PointId: "send", Status: &attunev1.PointStatus{Point: 7, State: attunev1.PointState_POINT_STATE_PLACED},
	}); err != nil {
		t.Fatal(err)
	}
	want := []sdk.Record{
		{Monotonic: 10, Point: "send", Thread: 42, Value: 5, Extra: 6},
		{Monotonic: 20, Point: "send", Flags: sdk.RecordDuration, Thread: 43, Value: 1 << 63},
	}
	if _, err := s.HandleEvents(ctx, &attunev1.HandleEventsRequest{Records: []*attunev1.NamedRecords{
		{Process: 1, Records: pack(want...), MonotonicToUnixNano: 1000},
	}}); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(l.heard, want) {
		t.Errorf("heard %v, want %v", l.heard, want)
	}
	if !slices.Equal(l.times, []int64{1010, 1020}) {
		t.Errorf("times %v, want 1010, 1020", l.times)
	}
	if _, err := s.HandleEvents(ctx, &attunev1.HandleEventsRequest{Records: []*attunev1.NamedRecords{
		{Process: 1, Records: make([]byte, 33)},
	}}); status.Code(err) != codes.InvalidArgument {
		t.Errorf("33 bytes of records: %v, want InvalidArgument", err)
	}
}

// counting counts records, to see what iterating costs.
type counting struct {
	bare
	allocs float64
	sum    uint64
}

func (c *counting) HandleRecords(_ *sdk.Host, r sdk.Records) {
	c.allocs = testing.AllocsPerRun(100, func() {
		for rec := range r.All() {
			c.sum += rec.Value
		}
	})
}

func TestRecordsDoNotAllocate(t *testing.T) {
	c := &counting{allocs: -1}
	s := sdk.NewServer(func() sdk.Tunlet { return c }, sdk.ServerOptions{})
	if _, err := s.HandleEvents(t.Context(), &attunev1.HandleEventsRequest{Records: []*attunev1.NamedRecords{
		{Process: 1, Records: pack(make([]sdk.Record, 1000)...)},
	}}); err != nil {
		t.Fatal(err)
	}
	if c.allocs != 0 {
		t.Errorf("%v allocations for 1000 records, want none", c.allocs)
	}
}

func TestEverySessionHasATunletOfItsOwn(t *testing.T) {
	var made []*listener
	s := sdk.NewServer(func() sdk.Tunlet {
		l := &listener{}
		made = append(made, l)
		return l
	}, sdk.ServerOptions{})
	ctx := t.Context()
	if _, err := s.Configure(ctx, &attunev1.ConfigureRequest{Options: map[string]string{"a": "b"}}); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, err := s.ApplicationStarted(ctx, nil); status.Code(err) != codes.Unimplemented {
			t.Fatal(err)
		}
	}
	if len(made) != 2 || made[1].options["a"] != "b" {
		t.Errorf("made %v, want two tunlets with the same options", made)
	}
}

func TestConfigureError(t *testing.T) {
	for _, tt := range []struct {
		name   string
		tunlet sdk.Tunlet
		option string
		want   string
	}{
		{"the tunlet's words", &listener{}, "bad", "bad option"},
		{"an option that it does not have", &listener{}, "nosuch", `option "nosuch": unknown; there is a, bad`},
		{"one that has none", bare{}, "nosuch", `option "nosuch": unknown; there is none`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := sdk.NewServer(func() sdk.Tunlet { return tt.tunlet }, sdk.ServerOptions{})
			r, err := s.Configure(t.Context(), &attunev1.ConfigureRequest{Options: map[string]string{tt.option: "1"}})
			if err != nil || r.GetError() != tt.want {
				t.Errorf("answer %q, error %v, want %q", r.GetError(), err, tt.want)
			}
		})
	}
}

// eager wants everything at once.
type eager struct{ bare }

func (eager) ApplicationStarted(h *sdk.Host, app sdk.Application) {
	h.AddPoint(sdk.Point{ID: "hook", Hook: "malloc", MinValue: 1, Processes: []sdk.Handle{3}})
	h.AddPoint(sdk.Point{ID: "function", Symbols: []string{"f*"}, DynamicCallsOnly: true, OneObject: true, Place: sdk.Both, Delivery: sdk.DeliverSampled, SampleEvery: 8, CoarseTime: true})
	h.RemovePoint("old")
	h.Propose(sdk.Proposal{
		ID: "p", Scope: "s", Reason: app.Mode, PredictedGain: 2, Confidence: 0.5,
		Changes: []sdk.Change{
			{Process: 3, Action: sdk.Setting("x.y", sdk.Uint(9))},
			{Process: 3, Knob: "v", Action: sdk.SetVariableFrom("lib*", "var", 4, sdk.Int(-1), sdk.Int(2)), SafePoint: sdk.SafePoint{Now: true}},
			{Process: 3, Knob: "f", Action: sdk.CallFunction("libc.so*", "mallopt", sdk.Int(1), sdk.Int(-3), sdk.Int(4096)),
				SafePoint: sdk.SafePoint{NextHook: true, Families: []string{"alloc"}}},
			{Process: 3, Action: sdk.SystemSettingOn("socket.tcp_nodelay", 0, sdk.Bool(true))},
		},
	})
	h.Withdraw("q", "room")
	h.Objective("s", 1.5)
	h.Remark(3, "%d of %s", 1, "two")
}

func TestReaction(t *testing.T) {
	s := sdk.NewServer(func() sdk.Tunlet { return eager{} }, sdk.ServerOptions{})
	out, err := s.ApplicationStarted(t.Context(), &attunev1.ApplicationStartedRequest{
		Application: &attunev1.Application{Mode: "tune"}, UnixNano: 77,
	})
	if err != nil {
		t.Fatal(err)
	}
	r := out.GetReaction()
	points := r.GetAddPoints()
	if points[0].GetHook() != "malloc" || points[0].GetPlace() != attunev1.Place_PLACE_ENTRY || points[0].GetDelivery() != attunev1.Delivery_DELIVERY_AGGREGATE {
		t.Errorf("first point %v", points[0])
	}
	if f := points[1].GetFunction(); !slices.Equal(f.GetSymbols(), []string{"f*"}) || !f.GetDynamicCallsOnly() || !f.GetOneObject() || points[1].GetSampleEvery() != 8 || !points[1].GetCoarseTime() {
		t.Errorf("second point %v", points[1])
	}
	changes := r.GetProposals()[0].GetChanges()
	if changes[0].GetKnob() != "x.y" || changes[0].GetSafePoint() != nil || changes[0].GetAction().GetSetting().GetValue().GetUnsigned() != 9 {
		t.Errorf("setting %v", changes[0])
	}
	if v := changes[1].GetAction().GetSetVariable(); v.GetRequiredOld().GetInteger() != -1 || v.GetValue().GetInteger() != 2 ||
		changes[1].GetSafePoint().GetKind() != attunev1.SafePoint_KIND_NOW {
		t.Errorf("variable %v", changes[1])
	}
	if c := changes[2].GetAction().GetCallFunction(); len(c.GetArguments()) != 2 || c.GetExpect().GetInteger() != 1 ||
		changes[2].GetSafePoint().GetKind() != attunev1.SafePoint_KIND_NEXT_HOOK {
		t.Errorf("call %v", changes[2])
	}
	if c := changes[3]; c.GetKnob() != "socket.tcp_nodelay@0" || c.GetAction().GetSystem().On == nil || !c.GetAction().GetSystem().GetValue().GetTruth() {
		t.Errorf("system setting %v", c)
	}
	if o := r.GetObjectives()[0]; o.GetUnixNano() != 77 || o.GetValue() != 1.5 {
		t.Errorf("objective %v, want 1.5 at 77", o)
	}
	if m := r.GetRemarks()[0]; m.GetText() != "1 of two" || m.GetProcess() != 3 {
		t.Errorf("remark %v", m)
	}
	if r.GetRemovePoints()[0] != "old" || r.GetWithdrawals()[0].GetProposalId() != "q" {
		t.Errorf("reaction %v", r)
	}
}
