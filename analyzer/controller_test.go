// SPDX-License-Identifier: Apache-2.0

package analyzer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// app is the application behind a fake controller: one process whose hits per
// interval depend on whether the knob was changed.
type app struct {
	slow, fast uint64
}

// controller is a scripted Application Controller over real gRPC. It announces
// processes, answers requests as the real one does, and sends aggregates at
// every interval it was told to.
type controller struct {
	t      *testing.T
	id     string
	conn   *grpc.ClientConn
	events grpc.ClientStreamingClient[attunev1.PublishRequest, attunev1.PublishResponse]
	manage grpc.BidiStreamingClient[attunev1.ManageRequest, attunev1.ManageResponse]
	cancel context.CancelFunc
	wg     sync.WaitGroup

	sendMu   sync.Mutex // before mu: sends on the event channel in order
	manageMu sync.Mutex // sends on the management channel
	mu       sync.Mutex // guards what follows
	apps     map[uint64]app
	points   map[uint32]bool // whether the processes come by there
	period   time.Duration
	changed  map[uint64]string // process to change id
	requests []string
	refuse   bool // applying is refused
	sampling chan time.Duration
}

// dial connects a controller.
func dial(t *testing.T, socket, id string) *controller {
	t.Helper()
	conn, err := grpc.NewClient("unix:"+socket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	c := &controller{
		t: t, id: id, conn: conn, cancel: cancel, apps: map[uint64]app{}, points: map[uint32]bool{},
		changed: map[uint64]string{}, sampling: make(chan time.Duration, 10),
	}
	if c.events, err = attunev1.NewEventServiceClient(conn).Publish(ctx); err != nil {
		t.Fatal(err)
	}
	if c.manage, err = attunev1.NewManagementServiceClient(conn).Manage(ctx); err != nil {
		t.Fatal(err)
	}
	c.publish(&attunev1.PublishRequest{Event: &attunev1.PublishRequest_Hello{Hello: &attunev1.StreamHello{ControllerId: id, Protocol: attunev1.Protocol}}})
	c.answer(&attunev1.ManageRequest{Message: &attunev1.ManageRequest_Hello{Hello: &attunev1.ControllerHello{ControllerId: id, Host: "node1", Protocol: attunev1.Protocol}}})
	c.wg.Go(c.serve)
	c.wg.Go(func() { c.sample(ctx) })
	t.Cleanup(func() { c.hangUp() })
	return c
}

// hangUp ends the connection without a word.
func (c *controller) hangUp() {
	c.cancel()
	c.wg.Wait()
	_ = c.conn.Close()
}

// close ends the event channel properly, and returns what the Analyzer counted.
func (c *controller) close() *attunev1.PublishResponse {
	c.t.Helper()
	c.sendMu.Lock()
	defer c.sendMu.Unlock()
	resp, err := c.events.CloseAndRecv()
	if err != nil {
		c.t.Fatal(err)
	}
	return resp
}

func (c *controller) publish(m *attunev1.PublishRequest) {
	c.sendMu.Lock()
	defer c.sendMu.Unlock()
	_ = c.events.Send(m) // fails only once the test has hung up
}

func (c *controller) answer(m *attunev1.ManageRequest) {
	c.manageMu.Lock()
	defer c.manageMu.Unlock()
	_ = c.manage.Send(m)
}

// start announces a process.
func (c *controller) start(handle uint64, a app) {
	c.mu.Lock()
	c.apps[handle] = a
	c.mu.Unlock()
	rank := int32(handle)
	c.publish(&attunev1.PublishRequest{Event: &attunev1.PublishRequest_ProcessStarted{ProcessStarted: &attunev1.Process{
		Handle: handle, Identity: &attunev1.ProcessIdentity{Pid: int32(1000 + handle)}, Executable: "/bin/solver", Rank: &rank,
		Mechanisms: []*attunev1.Mechanism{{Name: "dmlib", Available: true}, {Name: "uprobe", Reason: "needs CAP_BPF"}},
	}}})
}

// end announces a process' end.
func (c *controller) end(handle uint64, status int32) {
	c.mu.Lock()
	delete(c.apps, handle)
	delete(c.changed, handle)
	c.mu.Unlock()
	c.publish(&attunev1.PublishRequest{Event: &attunev1.PublishRequest_ProcessEnded{ProcessEnded: &attunev1.ProcessEnded{
		Process: handle, WaitStatus: &status, LostRing: 3,
	}}})
}

// serve answers requests until the channel ends.
func (c *controller) serve() {
	for {
		r, err := c.manage.Recv()
		if err != nil {
			if !errors.Is(err, io.EOF) && c.manage.Context().Err() == nil {
				c.t.Logf("management channel: %v", err)
			}
			return
		}
		for _, m := range c.handle(r) {
			c.answer(m)
		}
	}
}

// handle executes one request and returns its answers.
func (c *controller) handle(r *attunev1.ManageResponse) []*attunev1.ManageRequest {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.requests = append(c.requests, fmt.Sprintf("%T", r.GetRequest()))
	var out []*attunev1.ManageRequest
	switch k := r.GetRequest().(type) {
	case *attunev1.ManageResponse_Want:
		if period := time.Duration(k.Want.GetPeriodNanos()); period != c.period {
			c.period = period
			c.sampling <- period
		}
		out = c.want(k.Want.GetPoints())
	case *attunev1.ManageResponse_Apply:
		for _, ch := range k.Apply.GetChanges() {
			out = append(out, c.apply(r.GetRequestId(), ch))
		}
		out = append(out, done(r))
	case *attunev1.ManageResponse_Undo:
		for _, id := range k.Undo.GetChangeIds() {
			maps.DeleteFunc(c.changed, func(_ uint64, change string) bool { return change == id })
			out = append(out, result(&attunev1.ActionResult{RequestId: r.GetRequestId(), ChangeId: id, Outcome: attunev1.Outcome_OUTCOME_UNDONE}))
		}
		out = append(out, done(r))
	}
	return out
}

// want measures points, and no others. They all can be placed; the processes come by
// malloc only.
func (c *controller) want(points []*attunev1.PointWant) (placed []*attunev1.ManageRequest) {
	before := c.points
	c.points = map[uint32]bool{}
	for _, p := range points {
		c.points[p.GetIndex()] = p.GetPoint().GetHook() == "malloc"
		if _, placed := before[p.GetIndex()]; placed {
			continue
		}
		for handle := range c.apps {
			placed = append(placed, &attunev1.ManageRequest{Message: &attunev1.ManageRequest_Point{Point: &attunev1.PointStatus{
				Point: p.GetIndex(), Process: handle, State: attunev1.PointState_POINT_STATE_PLACED, Mechanism: "hook", CostNanos: 8,
			}}})
		}
	}
	return placed
}

// apply changes the knob of one process.
func (c *controller) apply(request string, ch *attunev1.Change) *attunev1.ManageRequest {
	if c.refuse {
		return result(&attunev1.ActionResult{RequestId: request, ChangeId: ch.GetId(),
			Outcome: attunev1.Outcome_OUTCOME_REFUSED, Reason: "no such setting in this process"})
	}
	if ch.GetLeaseNanos() <= 0 {
		c.t.Errorf("change %s has no lease", ch.GetId())
	}
	if _, ok := c.apps[ch.GetProcess()]; !ok {
		c.t.Errorf("change %s is for process %d, which this controller does not have", ch.GetId(), ch.GetProcess())
	}
	c.changed[ch.GetProcess()] = ch.GetId()
	return result(&attunev1.ActionResult{
		RequestId: request, ChangeId: ch.GetId(), Outcome: attunev1.Outcome_OUTCOME_APPLIED,
		OldValue: &attunev1.Value{Kind: &attunev1.Value_Integer{Integer: 1}}, NewValue: ch.GetAction().GetSetting().GetValue(),
		SafePoint: "malloc hook, thread 1001", AppliedUnixNano: time.Now().UnixNano(),
	})
}

func result(r *attunev1.ActionResult) *attunev1.ManageRequest {
	return &attunev1.ManageRequest{Message: &attunev1.ManageRequest_Result{Result: r}}
}

func done(r *attunev1.ManageResponse) *attunev1.ManageRequest {
	return &attunev1.ManageRequest{Message: &attunev1.ManageRequest_Done{Done: &attunev1.RequestDone{RequestId: r.GetRequestId()}}}
}

// sample sends aggregates and samples at the period it was asked for.
func (c *controller) sample(ctx context.Context) {
	var period time.Duration
	select {
	case period = <-c.sampling:
	case <-ctx.Done():
		return
	}
	ticker := time.NewTicker(period)
	defer ticker.Stop()
	for n := uint64(0); ; n++ {
		select {
		case now := <-ticker.C:
			c.publish(c.aggregates(now, period, n))
			c.publish(&attunev1.PublishRequest{Event: &attunev1.PublishRequest_Samples{Samples: &attunev1.SampleBatch{
				UnixNano: now.UnixNano(), Samples: []*attunev1.Sample{{Process: 1}, {Process: 99}},
			}}})
		case <-ctx.Done():
			return
		}
	}
}

// aggregates returns one interval of all processes and points.
func (c *controller) aggregates(now time.Time, period time.Duration, n uint64) *attunev1.PublishRequest {
	c.mu.Lock()
	defer c.mu.Unlock()
	b := &attunev1.AggregateBatch{FromUnixNano: now.Add(-period).UnixNano(), ToUnixNano: now.UnixNano()}
	for p, passed := range c.points {
		if !passed {
			continue
		}
		for handle, a := range c.apps {
			count := a.slow
			if c.changed[handle] != "" {
				count = a.fast
			}
			b.Aggregates = append(b.Aggregates, &attunev1.Aggregate{Point: p, Process: handle, Count: count + n%3})
		}
	}
	return &attunev1.PublishRequest{Event: &attunev1.PublishRequest_Aggregates{Aggregates: b}}
}
