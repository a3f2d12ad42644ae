// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strconv"
	"sync"
	"time"

	"google.golang.org/grpc"

	"github.com/attune-hpc/attune/bench/internal/measure"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// controller is one simulated Application Controller.
type controller struct {
	load                  *load
	number                int
	eventConn, manageConn *grpc.ClientConn
	events                grpc.ClientStreamingClient[attunev1.PublishRequest, attunev1.PublishResponse]
	manage                grpc.BidiStreamingClient[attunev1.ManageRequest, attunev1.ManageResponse]

	mu     sync.Mutex
	points []uint32      // that it was asked for
	period time.Duration // of samples that it was asked for
}

// newController connects one, which the Analyzer serves, and starts its processes.
func newController(l *load, number int) (*controller, error) {
	c := &controller{load: l, number: number}
	if err := c.open(); err != nil {
		c.close()
		return nil, err
	}
	l.work.Go(c.receive)
	l.work.Go(c.deliver)
	l.work.Go(c.awaitEnd)
	return c, nil
}

func (c *controller) open() (err error) {
	if c.eventConn, err = c.load.analyzer.dial(); err != nil {
		return err
	}
	if c.manageConn, err = c.load.analyzer.dial(); err != nil {
		return err
	}
	if c.manage, err = attunev1.NewManagementServiceClient(c.manageConn).Manage(c.load.ctx); err != nil {
		return err
	}
	if err := c.manage.Send(&attunev1.ManageRequest{Message: &attunev1.ManageRequest_Hello{Hello: c.hello()}}); err != nil {
		return err
	}
	first, err := c.manage.Recv() // what is wanted of it: only now it is served
	if err != nil {
		return err
	}
	if err := c.obey(first); err != nil {
		return err
	}
	if c.events, err = attunev1.NewEventServiceClient(c.eventConn).Publish(c.load.ctx); err != nil {
		return err
	}
	h := c.hello()
	err = c.events.Send(&attunev1.PublishRequest{Event: &attunev1.PublishRequest_Hello{Hello: &attunev1.StreamHello{
		ControllerId: h.GetControllerId(), Host: h.GetHost(), Registration: h.GetRegistration(), Job: h.GetJob(), User: h.GetUser(),
		Protocol: h.GetProtocol(),
	}}})
	for handle := 1; handle <= c.load.processes && err == nil; handle++ {
		err = c.events.Send(&attunev1.PublishRequest{Event: &attunev1.PublishRequest_ProcessStarted{ProcessStarted: c.process(handle)}})
	}
	return err
}

func (c *controller) hello() *attunev1.ControllerHello {
	host := "n" + strconv.Itoa(c.number)
	return &attunev1.ControllerHello{
		ControllerId: host, Host: host, Registration: c.load.registration, Job: c.load.job(c.number),
		User: &attunev1.Principal{Name: "ann", Uid: 4711, Role: attunev1.Role_ROLE_USER}, Protocol: attunev1.Protocol,
	}
}

func (c *controller) process(handle int) *attunev1.Process {
	rank := int32(c.number*c.load.processes + handle)
	return &attunev1.Process{
		Handle: uint64(handle), Identity: &attunev1.ProcessIdentity{Pid: 1000 + int32(handle)}, Host: "n" + strconv.Itoa(c.number), Uid: 4711,
		Executable: "/opt/site/bin/solver", CommandLine: []string{"solver", "in.dat"}, Rank: &rank, SeenUnixNano: time.Now().UnixNano(),
		Objects:    objects(),
		Mechanisms: []*attunev1.Mechanism{{Name: "dmlib", Available: true}, {Name: "uprobe", Available: true}},
	}
}

// objects are what programs have that the tunlets of the catalogue are about, all in
// one.
func objects() []string {
	return []string{"/usr/lib/libc.so.6", "/usr/lib/libmpi.so.40", "/usr/lib/libgomp.so.1", "/usr/lib/libpython3.11.so.1.0", "linked:go"}
}

// receive does as the Analyzer says until the stream ends.
func (c *controller) receive() {
	defer c.load.streamEnded()
	for {
		r, err := c.manage.Recv()
		if err != nil || c.obey(r) != nil {
			return
		}
	}
}

// awaitEnd waits until the stream of events ends: to send into it says so too late.
func (c *controller) awaitEnd() {
	_ = c.events.RecvMsg(new(attunev1.PublishResponse)) // whatever it says, nobody has closed the stream
	c.load.streamEnded()
}

// obey does as the Analyzer says.
func (c *controller) obey(r *attunev1.ManageResponse) error {
	c.take(r)
	return c.manage.Send(&attunev1.ManageRequest{Message: &attunev1.ManageRequest_Done{Done: &attunev1.RequestDone{RequestId: r.GetRequestId()}}})
}

// take notes what the Analyzer asks for.
func (c *controller) take(r *attunev1.ManageResponse) {
	c.mu.Lock()
	defer c.mu.Unlock()
	want := r.GetWant()
	if want == nil {
		return
	}
	c.points = nil
	for _, p := range want.GetPoints() {
		c.points = append(c.points, p.GetIndex())
	}
	c.period = time.Duration(want.GetPeriodNanos())
}

// deliver sends what is measured, each controller at times of its own, until the stream
// ends.
func (c *controller) deliver() {
	deliver := c.load.measured(c)
	for next := time.Now().Add(interval * time.Duration(c.number%100) / 100); measure.Pause(c.load.ctx, time.Until(next)) == nil; {
		message, wait := deliver(time.Now())
		if message != nil && c.events.Send(message) != nil {
			return
		}
		next = next.Add(wait)
	}
}

func (c *controller) close() {
	for _, conn := range []*grpc.ClientConn{c.eventConn, c.manageConn} {
		if conn != nil {
			_ = conn.Close()
		}
	}
}
