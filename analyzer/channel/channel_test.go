// SPDX-License-Identifier: Apache-2.0

package channel

import (
	"context"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"
	"google.golang.org/protobuf/proto"

	"github.com/attune-hpc/attune/analyzer/session"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// errOver is what the session of these tests says at its end.
var errOver = status.Error(codes.Aborted, "over")

// noted is a session that notes what its channels bring.
type noted struct {
	connected chan session.Controller
	gone      chan bool // whether the controller has parted
	managed   chan *attunev1.ManageRequest
	published chan int // bytes of records in a message
	refused   chan string
	done      chan struct{}
}

func newNoted() *noted {
	return &noted{
		connected: make(chan session.Controller, 1), gone: make(chan bool, 1),
		managed: make(chan *attunev1.ManageRequest, 1), published: make(chan int, 1), refused: make(chan string, 2), done: make(chan struct{}),
	}
}

func (*noted) EventsConnected(*attunev1.StreamHello) {}

func (n *noted) Publish(_ string, m *attunev1.PublishRequest) {
	n.published <- len(m.GetRecords().GetRecords())
}

func (n *noted) ControllerConnected(_ *attunev1.ControllerHello, c session.Controller) {
	n.connected <- c
}
func (n *noted) ControllerGone(_ string, _ session.Controller, parted bool) { n.gone <- parted }
func (n *noted) ControllerRefused(host, why string)                         { n.refused <- host + ": " + why }
func (n *noted) Manage(_ string, m *attunev1.ManageRequest)                 { n.managed <- m }
func (n *noted) Done() <-chan struct{}                                      { return n.done }
func (*noted) Ended() error                                                 { return errOver }

// wire is the way between a controller and the Analyzer. It can be cut as a
// network is: nobody is told, nothing arrives.
type wire struct {
	net.Conn
	mu  *sync.Mutex
	cut *bool
}

func (w wire) isCut() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return *w.cut
}

func (w wire) Write(p []byte) (int, error) {
	if w.isCut() {
		return len(p), nil
	}
	return w.Conn.Write(p)
}

func (w wire) Read(p []byte) (int, error) {
	for {
		n, err := w.Conn.Read(p)
		if err != nil || !w.isCut() {
			return n, err
		}
	}
}

// rig is an Analyzer's server with one session, and a controller's connection.
type rig struct {
	session  *noted
	conn     *grpc.ClientConn
	cut      func()
	number   uint64 // of the connection
	channels *Channels
}

// inBubble runs a test with a rig, in time that passes when nothing else happens.
func inBubble(t *testing.T, test func(*testing.T, *rig)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		r := &rig{session: newNoted()}
		var mu sync.Mutex
		cut := false
		r.cut = func() {
			mu.Lock()
			defer mu.Unlock()
			cut = true
		}
		listener := bufconn.Listen(1 << 16)
		server := NewServer(insecure.NewCredentials())
		r.channels = Register(server, func(context.Context, Hello) (Session, error) { return r.session, nil })
		served := make(chan error, 1)
		go func() { served <- server.Serve(listener) }()
		var err error
		r.conn, err = grpc.NewClient("passthrough:analyzer", grpc.WithTransportCredentials(insecure.NewCredentials()),
			grpc.WithDefaultCallOptions(grpc.MaxCallSendMsgSize(2*attunev1.MaxMessage)),
			grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) {
				conn, err := listener.DialContext(ctx)
				return wire{conn, &mu, &cut}, err
			}))
		if err != nil {
			t.Fatal(err)
		}
		defer func() {
			r.conn.Close()
			server.Stop()
			r.channels.Wait()
			if err := <-served; err != nil {
				t.Error(err)
			}
		}()
		test(t, r)
	})
}

// manage opens a management channel.
func (r *rig) manage(t *testing.T) (manage grpc.BidiStreamingClient[attunev1.ManageRequest, attunev1.ManageResponse], analyzer session.Controller) {
	t.Helper()
	manage, err := attunev1.NewManagementServiceClient(r.conn).Manage(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	hello := &attunev1.ControllerHello{ControllerId: "c", Protocol: attunev1.Protocol, Connection: r.number}
	if err := manage.Send(&attunev1.ManageRequest{Message: &attunev1.ManageRequest_Hello{Hello: hello}}); err != nil {
		t.Fatal(err)
	}
	return manage, <-r.session.connected
}

// events opens an event channel.
func (r *rig) events(t *testing.T) grpc.ClientStreamingClient[attunev1.PublishRequest, attunev1.PublishResponse] {
	t.Helper()
	events, err := attunev1.NewEventServiceClient(r.conn).Publish(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	hello := &attunev1.StreamHello{ControllerId: "c", Protocol: attunev1.Protocol, Connection: r.number}
	if err := events.Send(&attunev1.PublishRequest{Event: &attunev1.PublishRequest_Hello{Hello: hello}}); err != nil {
		t.Fatal(err)
	}
	return events
}

// TestControllerThatDoesNotRead: its channel ends when the queue is full, however
// little of it the connection has taken, and the session hears of it.
func TestControllerThatDoesNotRead(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		manage, controller := r.manage(t)
		request := &attunev1.ManageResponse{Request: &attunev1.ManageResponse_Undo{Undo: &attunev1.UndoChanges{
			ChangeIds: []string{string(make([]byte, 1000))},
		}}}
		sent := 0
		for controller.Send(request) {
			if sent++; sent > 2*requestQueue {
				t.Fatal("requests pile up without bound")
			}
			synctest.Wait() // what the connection takes is taken
		}
		if sent < requestQueue {
			t.Errorf("%d requests were queued, want %d at least", sent, requestQueue)
		}
		synctest.Wait()
		select {
		case parted := <-r.session.gone:
			if parted {
				t.Error("it counts as having left")
			}
		default:
			t.Fatal("the session does not hear that it has lost its controller")
		}
		for {
			if _, err := manage.Recv(); err != nil {
				if status.Code(err) != codes.ResourceExhausted {
					t.Errorf("the controller is told %v", err)
				}
				return
			}
		}
	})
}

// TestSessionEnds while its channels run: each is told why, as soon as it can be.
func TestSessionEnds(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		manage, _ := r.manage(t)
		events := r.events(t)
		synctest.Wait()
		close(r.session.done)
		if _, err := manage.Recv(); status.Code(err) != codes.Aborted {
			t.Errorf("management channel: %v", err)
		}
		if parted := <-r.session.gone; parted {
			t.Error("the controller counts as having left by itself")
		}
		_ = events.Send(&attunev1.PublishRequest{}) // its error is the same for every end
		if _, err := events.CloseAndRecv(); status.Code(err) != codes.Aborted {
			t.Errorf("event channel: %v", err)
		}
		if len(r.session.published) > 0 {
			t.Error("a session that has ended gets events")
		}
	})
}

// TestControllerLeaves: who closes the channel has parted, which is not told as
// a loss.
func TestControllerLeaves(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		manage, controller := r.manage(t)
		controller.Send(&attunev1.ManageResponse{})
		if _, err := manage.Recv(); err != nil {
			t.Fatal(err)
		}
		if err := manage.CloseSend(); err != nil {
			t.Fatal(err)
		}
		if parted := <-r.session.gone; !parted {
			t.Error("it counts as lost")
		}
	})
}

// TestSilentPeer: a node that has lost its power is noticed though it says
// nothing any more, after a ping in vain.
func TestSilentPeer(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		r.manage(t)
		synctest.Wait()
		time.Sleep(5 * pingAfter) // one that is there answers
		if len(r.session.gone) > 0 {
			t.Fatal("a controller that has nothing to say counts as lost")
		}
		r.cut()
		began := time.Now()
		if parted := <-r.session.gone; parted {
			t.Error("it counts as having left")
		}
		if took := time.Since(began); took > pingAfter+pingPatience+time.Second {
			t.Errorf("noticed after %v", took)
		}
	})
}

// TestMessageSize: a message of 16 MB arrives, a larger one ends its channel and
// does not reach the session.
func TestMessageSize(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		records := &attunev1.RecordBatch{}
		m := &attunev1.PublishRequest{Event: &attunev1.PublishRequest_Records{Records: records}}
		records.Records = make([]byte, attunev1.MaxMessage/2)
		records.Records = make([]byte, attunev1.MaxMessage-(proto.Size(m)-attunev1.MaxMessage/2))
		if size := proto.Size(m); size != attunev1.MaxMessage {
			t.Fatalf("the message has %d bytes, want %d", size, attunev1.MaxMessage)
		}
		events := r.events(t)
		if err := events.Send(m); err != nil {
			t.Fatal(err)
		}
		if got := <-r.session.published; got != len(records.Records) {
			t.Errorf("%d bytes have arrived, want %d", got, len(records.Records))
		}
		records.Records = append(records.Records, 0)
		_ = events.Send(m) // its error is the same for every end
		if _, err := events.CloseAndRecv(); status.Code(err) != codes.ResourceExhausted {
			t.Errorf("one byte more: %v", err)
		}
		if len(r.session.published) > 0 {
			t.Error("the session gets what is too large")
		}
	})
}

// TestHello: a channel that does not begin with one leads nowhere.
func TestHello(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		manage, err := attunev1.NewManagementServiceClient(r.conn).Manage(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if err := manage.Send(&attunev1.ManageRequest{}); err != nil {
			t.Fatal(err)
		}
		if _, err := manage.Recv(); status.Code(err) != codes.InvalidArgument {
			t.Errorf("management channel: %v", err)
		}
		events, err := attunev1.NewEventServiceClient(r.conn).Publish(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		_ = events.Send(&attunev1.PublishRequest{}) // its error is the same for every end
		if _, err := events.CloseAndRecv(); status.Code(err) != codes.InvalidArgument {
			t.Errorf("event channel: %v", err)
		}
	})
}

// TestOtherVersion: who speaks another protocol is refused on both channels with what
// to do, and the session hears of it.
func TestOtherVersion(t *testing.T) {
	for theirs, want := range map[uint32]string{
		0: "the controller speaks protocol 0, the Analyzer protocol 2: install the same version of Attune on both, the controller's is older",
		3: "the controller speaks protocol 3, the Analyzer protocol 2: install the same version of Attune on both, the Analyzer's is older",
	} {
		inBubble(t, func(t *testing.T, r *rig) {
			manage, err := attunev1.NewManagementServiceClient(r.conn).Manage(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			hello := &attunev1.ControllerHello{ControllerId: "c", Host: "n1", Protocol: theirs}
			if err := manage.Send(&attunev1.ManageRequest{Message: &attunev1.ManageRequest_Hello{Hello: hello}}); err != nil {
				t.Fatal(err)
			}
			if _, err := manage.Recv(); status.Code(err) != codes.Unimplemented || status.Convert(err).Message() != want {
				t.Errorf("management channel: %v", err)
			}
			events, err := attunev1.NewEventServiceClient(r.conn).Publish(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if err := events.Send(&attunev1.PublishRequest{Event: &attunev1.PublishRequest_Hello{
				Hello: &attunev1.StreamHello{ControllerId: "c", Host: "n1", Protocol: theirs},
			}}); err != nil {
				t.Fatal(err)
			}
			if _, err := events.CloseAndRecv(); status.Code(err) != codes.Unimplemented || status.Convert(err).Message() != want {
				t.Errorf("event channel: %v", err)
			}
			if told := <-r.session.refused; told != "n1: "+want {
				t.Errorf("the session is told %q", told)
			}
			if len(r.session.connected) > 0 {
				t.Error("the session has the controller all the same")
			}
		})
	}
}
