// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strconv"
	"sync"
	"time"

	"google.golang.org/grpc"

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
	points []uint32 // that it was asked for
}

// newController connects one and starts its processes.
func newController(l *load, number int) (*controller, error) {
	c := &controller{load: l, number: number}
	if err := c.open(); err != nil {
		c.close()
		return nil, err
	}
	l.work.Go(c.receive)
	l.work.Go(c.deliver)
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
	if c.events, err = attunev1.NewEventServiceClient(c.eventConn).Publish(c.load.ctx); err != nil {
		return err
	}
	h := c.hello()
	err = c.events.Send(&attunev1.PublishRequest{Event: &attunev1.PublishRequest_Hello{Hello: &attunev1.StreamHello{
		ControllerId: h.GetControllerId(), Host: h.GetHost(), Registration: h.GetRegistration(), Job: h.GetJob(), User: h.GetUser(),
		Protocol: h.GetProtocol(),
	}}})
	for handle := 1; handle <= c.load.document.Processes && err == nil; handle++ {
		err = c.events.Send(&attunev1.PublishRequest{Event: &attunev1.PublishRequest_ProcessStarted{ProcessStarted: c.process(handle)}})
	}
	return err
}

func (c *controller) hello() *attunev1.ControllerHello {
	host := "n" + strconv.Itoa(c.number)
	return &attunev1.ControllerHello{
		ControllerId: host, Host: host, Cpus: 64, Registration: c.load.registration, Job: c.load.job(c.number),
		User: &attunev1.Principal{Name: "ann", Uid: 4711, Role: attunev1.Role_ROLE_USER}, Protocol: attunev1.Protocol,
	}
}

func (c *controller) process(handle int) *attunev1.Process {
	rank := int32(c.number*c.load.document.Processes + handle)
	return &attunev1.Process{
		Handle: uint64(handle), Identity: &attunev1.ProcessIdentity{Pid: 1000 + int32(handle)}, Host: "n" + strconv.Itoa(c.number), Uid: 4711,
		Executable: "/opt/site/bin/solver", CommandLine: []string{"solver", "in.dat"}, Rank: &rank, SeenUnixNano: time.Now().UnixNano(),
		Mechanisms: []*attunev1.Mechanism{{Name: "dmlib", Available: true}, {Name: "uprobe", Available: true}},
	}
}

// receive does as the Analyzer says.
func (c *controller) receive() {
	for {
		r, err := c.manage.Recv()
		if err != nil {
			return
		}
		if want := r.GetWant(); want != nil {
			c.mu.Lock()
			c.points = nil
			for _, p := range want.GetPoints() {
				c.points = append(c.points, p.GetIndex())
			}
			c.mu.Unlock()
		}
		done := &attunev1.ManageRequest{Message: &attunev1.ManageRequest_Done{Done: &attunev1.RequestDone{RequestId: r.GetRequestId()}}}
		if c.manage.Send(done) != nil {
			return
		}
	}
}

// deliver sends aggregates, each controller at a time of its own.
func (c *controller) deliver() {
	offset := interval * time.Duration(c.number%100) / 100
	if pause(c.load.ctx, offset) != nil {
		return
	}
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		select {
		case <-c.load.ctx.Done():
			return
		case now := <-ticker.C:
			if c.events.Send(c.aggregates(now)) != nil {
				return
			}
		}
	}
}

// aggregates are those of one interval.
func (c *controller) aggregates(now time.Time) *attunev1.PublishRequest {
	c.mu.Lock()
	defer c.mu.Unlock()
	b := &attunev1.AggregateBatch{FromUnixNano: now.Add(-interval).UnixNano(), ToUnixNano: now.UnixNano()}
	for _, p := range c.points {
		for handle := 1; handle <= c.load.document.Processes; handle++ {
			b.Aggregates = append(b.Aggregates, &attunev1.Aggregate{Point: p, Process: uint64(handle), Count: 100, Sum: 4096, Min: 8, Max: 64})
		}
	}
	return &attunev1.PublishRequest{Event: &attunev1.PublishRequest_Aggregates{Aggregates: b}}
}

func (c *controller) close() {
	for _, conn := range []*grpc.ClientConn{c.eventConn, c.manageConn} {
		if conn != nil {
			_ = conn.Close()
		}
	}
}
