// SPDX-License-Identifier: Apache-2.0

package local

import (
	"context"
	"errors"
	"net"
	"sync"
	"testing"

	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/test/bufconn"

	"github.com/attune-hpc/attune/analyzer/channel"
	"github.com/attune-hpc/attune/analyzer/session"
	"github.com/attune-hpc/attune/controller/link"
	"github.com/attune-hpc/attune/internal/testing/patience"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// dying is a session that takes some messages, and then is killed with the next one in
// its hands.
type dying struct {
	channel.Session
	connected chan session.Controller
	left      int           // how many messages it takes yet
	stuck     chan struct{} // closed when it has one more
	killed    chan struct{}

	mu    sync.Mutex // guards taken
	taken carried
}

func (*dying) EventsConnected(*attunev1.StreamHello)           {}
func (*dying) ControllerGone(string, session.Controller, bool) {}
func (*dying) Manage(string, *attunev1.ManageRequest)          {}
func (d *dying) Done() <-chan struct{}                         { return nil }
func (d *dying) ControllerConnected(_ *attunev1.ControllerHello, c session.Controller) {
	d.connected <- c
}

func (d *dying) Publish(_ string, m *attunev1.PublishRequest) {
	if d.left == 0 {
		close(d.stuck)
		<-d.killed
	}
	if d.left--; d.left >= 0 {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.taken.add(m)
	}
}

// carried is what messages carry.
type carried struct{ hits, samples, ends, records uint64 }

func (c *carried) add(m *attunev1.PublishRequest) {
	switch e := m.GetEvent().(type) {
	case *attunev1.PublishRequest_Aggregates:
		c.hits += e.Aggregates.GetAggregates()[0].GetCount()
	case *attunev1.PublishRequest_Samples:
		c.samples += uint64(len(e.Samples.GetSamples()))
	case *attunev1.PublishRequest_ProcessEnded:
		c.ends++
	case *attunev1.PublishRequest_Records:
		c.records += uint64(len(e.Records.GetRecords()) / attunev1.RecordSize)
	}
}

func (c *carried) lose(l link.Loss) {
	c.hits, c.samples, c.ends, c.records = c.hits+l.Hits, c.samples+l.Samples, c.ends+l.Ends, c.records+l.Records
}

func (c carried) plus(more carried) carried {
	return carried{c.hits + more.hits, c.samples + more.samples, c.ends + more.ends, c.records + more.records}
}

// message returns the nth of a stream that has all kinds.
func message(n int) *attunev1.PublishRequest {
	switch n % 5 {
	case 0:
		return &attunev1.PublishRequest{Event: &attunev1.PublishRequest_Aggregates{
			Aggregates: &attunev1.AggregateBatch{Aggregates: []*attunev1.Aggregate{{Count: 3}}},
		}}
	case 1:
		return &attunev1.PublishRequest{Event: &attunev1.PublishRequest_Samples{
			Samples: &attunev1.SampleBatch{Samples: []*attunev1.Sample{{}, {}}},
		}}
	case 2:
		return &attunev1.PublishRequest{Event: &attunev1.PublishRequest_ProcessEnded{ProcessEnded: &attunev1.ProcessEnded{Process: 1}}}
	case 3: // told again
		return &attunev1.PublishRequest{Event: &attunev1.PublishRequest_ProcessStarted{ProcessStarted: &attunev1.Process{Handle: 1}}}
	default:
		return &attunev1.PublishRequest{Event: &attunev1.PublishRequest_Records{
			Records: &attunev1.RecordBatch{Process: 1, Records: make([]byte, 5*attunev1.RecordSize), RecordCount: 5},
		}}
	}
}

// once finds an Analyzer, and none after it.
type once struct {
	peer  link.Peer
	found bool
}

func (o *once) Find(ctx context.Context) (link.Peer, <-chan struct{}, error) {
	if !o.found {
		o.found = true
		return o.peer, nil, nil
	}
	<-ctx.Done()
	return link.Peer{}, nil, ctx.Err()
}

// connected is a controller's client and the Analyzer that is to be killed.
type connected struct {
	client *link.Client
	asked  chan string   // ids of requests that have come
	opened chan struct{} // closed when there is a connection
	gone   chan struct{} // that it is lost
	kill   func()

	mu    sync.Mutex // guards what follows
	wires []net.Conn
	lost  carried
}

// connect has a session served, to which a controller connects once. All of it ends with
// the test.
func connect(t *testing.T, s *dying) *connected {
	t.Helper()
	listener := bufconn.Listen(1 << 16)
	server := channel.NewServer(insecure.NewCredentials())
	channels := channel.Register(server, func(context.Context, channel.Hello) (channel.Session, error) { return s, nil })
	served, ran := make(chan error, 1), make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	c := &connected{asked: make(chan string, 1), opened: make(chan struct{}), gone: make(chan struct{}, 1)}
	c.kill = sync.OnceFunc(func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		for _, wire := range c.wires {
			wire.Close()
		}
		close(s.killed)
	})
	var err error
	c.client, err = link.New(c.options(listener))
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		ran <- c.client.Run(context.Background(), func(_ context.Context, r *attunev1.ManageResponse) { c.asked <- r.GetRequestId() })
	}()
	t.Cleanup(func() {
		c.kill()
		c.client.Finish()
		ended := <-ran
		server.Stop()
		channels.Wait()
		if err := errors.Join(ended, <-served); err != nil {
			t.Error(err)
		}
	})
	patience.Closed(t, "the connection", c.opened)
	return c
}

func (c *connected) options(listener *bufconn.Listener) link.Options {
	dial := func(ctx context.Context) (net.Conn, error) {
		wire, err := listener.DialContext(ctx)
		c.mu.Lock()
		defer c.mu.Unlock()
		c.wires = append(c.wires, wire)
		return wire, err
	}
	return link.Options{
		Finder: &once{peer: link.Peer{Address: "it", Credentials: insecure.NewCredentials(), Dial: dial}},
		Hello: func() *attunev1.ControllerHello {
			return &attunev1.ControllerHello{ControllerId: "c", Protocol: attunev1.Protocol}
		},
		Opened: func(_ func(*attunev1.PublishRequest) error, open func()) { open(); close(c.opened) },
		Lost:   func() { c.gone <- struct{}{} },
		Undelivered: func(loss link.Loss) {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.lost.lose(loss)
		},
	}
}

// TestAnalyzerIsKilled with messages before it, behind it and on the way: what it has
// taken and what the controller counts as lost are together what was sent.
func TestAnalyzerIsKilled(t *testing.T) {
	const messages, taken = 1000, 300
	s := &dying{connected: make(chan session.Controller, 1), left: taken, stuck: make(chan struct{}), killed: make(chan struct{})}
	c := connect(t, s)
	var sent carried
	for n := range messages {
		m := message(n)
		sent.add(m)
		if err := c.client.Publish(patience.Context(t), m); err != nil {
			t.Fatal(err)
		}
	}
	patience.Closed(t, "the message at which it is killed", s.stuck)
	controller := patience.Receive(t, "the management channel", s.connected)
	controller.Send(&attunev1.ManageResponse{RequestId: "last words"}) // and what it has taken
	if id := patience.Receive(t, "a request", c.asked); id != "last words" {
		t.Errorf("request %q is handled", id)
	}
	c.kill()
	patience.Receive(t, "the loss of the connection", c.gone)
	c.mu.Lock()
	defer c.mu.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	if got := s.taken.plus(c.lost); got != sent {
		t.Errorf("%+v taken and %+v lost are %+v, want %+v", s.taken, c.lost, got, sent)
	}
	if s.taken.hits == 0 || c.lost.hits == 0 {
		t.Errorf("%+v taken, %+v lost, want some of both", s.taken, c.lost)
	}
}
