// SPDX-License-Identifier: Apache-2.0

//go:build privileged

package main

import (
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"

	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// scripted is an Analyzer that does what a test wants, over the real protocol.
type scripted struct {
	attunev1.UnimplementedEventServiceServer
	attunev1.UnimplementedManagementServiceServer
	attunev1.UnimplementedSessionServiceServer
	points     []*attunev1.PointWant        // asked for at each connection
	registered func(*attunev1.Registration) // nil: nobody registers

	mu      sync.Mutex // guards what follows
	current *connection
	hellos  []*attunev1.ControllerHello
}

// connection is one controller's.
type connection struct {
	requests  chan *attunev1.ManageResponse
	results   chan *attunev1.ActionResult
	processes chan *attunev1.Process
	points    chan *attunev1.PointStatus
	counts    chan uint64 // hits of aggregates
	taken     chan string // changes that were taken over
}

// serveScript serves an Analyzer at a socket until stop is called.
func serveScript(t *testing.T, a *scripted, path string) (stop func()) {
	t.Helper()
	listener, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer()
	attunev1.RegisterEventServiceServer(server, a)
	attunev1.RegisterManagementServiceServer(server, a)
	attunev1.RegisterSessionServiceServer(server, a)
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = server.Serve(listener) // it ends with stop
	}()
	stop = sync.OnceFunc(func() {
		server.Stop()
		<-done
	})
	t.Cleanup(stop)
	return stop
}

// connection returns the present one, made by whichever channel comes first
// with a new hello.
func (a *scripted) connection(fresh bool) *connection {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.current == nil || fresh {
		a.current = &connection{
			requests: make(chan *attunev1.ManageResponse, 100), results: make(chan *attunev1.ActionResult, 100),
			processes: make(chan *attunev1.Process, 1000), points: make(chan *attunev1.PointStatus, 1000), counts: make(chan uint64, 100_000),
			taken: make(chan string, 100),
		}
	}
	return a.current
}

// reset forgets the present connection: the next one is another.
func (a *scripted) reset() *connection { return a.connection(true) }

func (a *scripted) StartSession(_ context.Context, r *attunev1.StartSessionRequest) (*attunev1.StartSessionResponse, error) {
	a.registered(r.GetRegistration())
	return &attunev1.StartSessionResponse{Registration: r.GetRegistration()}, nil
}

func (a *scripted) Publish(stream attunev1.EventService_PublishServer) error {
	c := a.connection(false)
	for {
		m, err := stream.Recv()
		if err != nil {
			return err
		}
		c.take(m)
	}
}

func (c *connection) take(m *attunev1.PublishRequest) {
	switch e := m.GetEvent().(type) {
	case *attunev1.PublishRequest_News:
		for _, one := range e.News.GetNews() {
			c.take(one)
		}
	case *attunev1.PublishRequest_ProcessStarted:
		c.processes <- e.ProcessStarted
	case *attunev1.PublishRequest_ProcessChanged:
		c.processes <- e.ProcessChanged
	case *attunev1.PublishRequest_Aggregates:
		for _, aggregate := range e.Aggregates.GetAggregates() {
			c.counts <- aggregate.GetCount()
		}
	}
}

func (a *scripted) Manage(stream attunev1.ManagementService_ManageServer) error {
	c := a.connection(false)
	ctx, cancel := context.WithCancel(stream.Context())
	defer cancel()
	go a.receive(c, stream, cancel)
	want := &attunev1.Want{Points: a.points, PeriodNanos: int64(20 * time.Millisecond)}
	if err := stream.Send(&attunev1.ManageResponse{Request: &attunev1.ManageResponse_Want{Want: want}}); err != nil {
		return err
	}
	renew := time.NewTicker(200 * time.Millisecond)
	defer renew.Stop()
	for {
		var request *attunev1.ManageResponse
		select {
		case <-ctx.Done():
			return ctx.Err()
		case request = <-c.requests:
		case <-renew.C:
			request = &attunev1.ManageResponse{Request: &attunev1.ManageResponse_Renew{Renew: &attunev1.RenewLease{}}}
		}
		if err := stream.Send(request); err != nil {
			return err
		}
	}
}

func (a *scripted) receive(c *connection, stream attunev1.ManagementService_ManageServer, cancel func()) {
	defer cancel()
	for {
		m, err := stream.Recv()
		if errors.Is(err, io.EOF) || err != nil {
			return
		}
		if hello := m.GetHello(); hello != nil {
			a.mu.Lock()
			a.hellos = append(a.hellos, hello)
			a.mu.Unlock()
		}
		if result := m.GetResult(); result != nil {
			c.results <- result
		}
		for _, id := range m.GetTakenOver().GetChanges() {
			c.taken <- id
		}
		if status := m.GetPoint(); status != nil {
			c.points <- status
		}
	}
}

// lastHello is that of the latest controller.
func (a *scripted) lastHello() *attunev1.ControllerHello {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.hellos) == 0 {
		return nil
	}
	return a.hellos[len(a.hellos)-1]
}
