// SPDX-License-Identifier: Apache-2.0

package link

import (
	"context"
	"errors"
	"io"
	"net"
	"path/filepath"
	"sync"
	"testing"

	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/attune-hpc/attune/internal/testing/patience"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// analyzer is the other end: it keeps what it is told and sends a request when a
// connection begins, and those that the test has.
type analyzer struct {
	attunev1.UnimplementedEventServiceServer
	attunev1.UnimplementedManagementServiceServer
	request  *attunev1.ManageResponse
	requests chan *attunev1.ManageResponse
	mu       sync.Mutex // guards refuse
	refuse   error
	messages chan *attunev1.PublishRequest
	answers  chan *attunev1.ManageRequest
	gone     chan struct{} // closed when it is to read no more
}

func (a *analyzer) Publish(stream attunev1.EventService_PublishServer) error {
	a.mu.Lock()
	refuse := a.refuse
	a.mu.Unlock()
	if refuse != nil {
		return refuse
	}
	var n uint64
	for {
		message, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return stream.SendAndClose(&attunev1.PublishResponse{Messages: n})
		}
		if err != nil {
			return err
		}
		n++
		select {
		case a.messages <- message:
		case <-a.gone:
			return status.Error(codes.Unavailable, "it goes")
		}
	}
}

func (a *analyzer) Manage(stream attunev1.ManagementService_ManageServer) error {
	if a.request != nil {
		if err := stream.Send(a.request); err != nil {
			return err
		}
	}
	go func() {
		for {
			select {
			case request := <-a.requests:
				_ = stream.Send(request) // the test waits for what it brings about
			case <-stream.Context().Done():
				return
			}
		}
	}()
	for {
		answer, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		a.answers <- answer
	}
}

func serve(t *testing.T, a *analyzer) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "a.sock")
	listener, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer()
	attunev1.RegisterEventServiceServer(server, a)
	attunev1.RegisterManagementServiceServer(server, a)
	done := make(chan error, 1)
	go func() { done <- server.Serve(listener) }()
	t.Cleanup(func() {
		server.Stop()
		<-done
	})
	return "unix:" + path
}

func newAnalyzer() *analyzer {
	return &analyzer{
		request:  &attunev1.ManageResponse{RequestId: "r1"},
		requests: make(chan *attunev1.ManageResponse),
		messages: make(chan *attunev1.PublishRequest, 100),
		answers:  make(chan *attunev1.ManageRequest, 100),
		gone:     make(chan struct{}),
	}
}

func mustClient(t *testing.T, address string) *Client {
	t.Helper()
	c, err := New(Options{
		Peer:  Peer{Address: address},
		Hello: func() *attunev1.ControllerHello { return &attunev1.ControllerHello{ControllerId: "c1"} },
	})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestRunDeliversEverythingBeforeItEnds(t *testing.T) {
	a := newAnalyzer()
	c := mustClient(t, serve(t, a))
	ctx := context.Background()
	ran := make(chan error, 1)
	handled := make(chan string, 1)
	go func() {
		ran <- c.Run(ctx, func(_ context.Context, r *attunev1.ManageResponse) { handled <- r.GetRequestId() })
	}()
	for range 10 {
		if err := c.Publish(ctx, &attunev1.PublishRequest{Event: &attunev1.PublishRequest_Records{}}); err != nil {
			t.Fatal(err)
		}
	}
	if got := <-handled; got != "r1" {
		t.Errorf("handled request %q", got)
	}
	if err := c.Answer(ctx, &attunev1.ManageRequest{}); err != nil {
		t.Fatal(err)
	}
	c.Finish()
	if err := <-ran; err != nil {
		t.Fatal(err)
	}
	if got := len(a.messages); got != 11 {
		t.Errorf("analyzer received %d messages, want hello and 10", got)
	}
	if hello := (<-a.messages).GetHello(); hello.GetControllerId() != "c1" {
		t.Errorf("first message is %v, want hello", hello)
	}
	if got := len(a.answers); got != 2 {
		t.Errorf("analyzer received %d answers, want hello and 1", got)
	}
	if err := c.Publish(ctx, &attunev1.PublishRequest{}); err == nil {
		t.Error("publish after the end succeeded")
	}
}

// TestTextsOfPrograms: a text that is not UTF-8 ends no channel, and what has it arrives, too.
func TestTextsOfPrograms(t *testing.T) {
	a := newAnalyzer()
	c := mustClient(t, serve(t, a))
	ran := make(chan error, 1)
	go func() { ran <- c.Run(t.Context(), func(context.Context, *attunev1.ManageResponse) {}) }()
	for _, name := range []string{"caf\xe9", "cafe"} {
		if err := c.Publish(t.Context(), &attunev1.PublishRequest{
			Event: &attunev1.PublishRequest_ProcessStarted{ProcessStarted: &attunev1.Process{Executable: name}},
		}); err != nil {
			t.Fatal(err)
		}
		if err := c.Answer(t.Context(), &attunev1.ManageRequest{
			Message: &attunev1.ManageRequest_Point{Point: &attunev1.PointStatus{Reason: name}},
		}); err != nil {
			t.Fatal(err)
		}
	}
	<-a.messages // hello
	<-a.answers
	for _, want := range []string{"caf?", "cafe"} {
		if m := patience.Receive(t, "a start", a.messages); m.GetProcessStarted().GetExecutable() != want {
			t.Errorf("%v, want %q", m, want)
		}
		if m := patience.Receive(t, "an answer", a.answers); m.GetPoint().GetReason() != want {
			t.Errorf("%v, want %q", m, want)
		}
	}
	c.Finish()
	if err := <-ran; err != nil {
		t.Error(err)
	}
}

// TestFullQueueTakesNoMore: and what it has is handed back when the connection ends.
func TestFullQueueTakesNoMore(t *testing.T) {
	returned := 0
	c, err := New(Options{ // nobody takes anything out of the queue
		Peer: Peer{Address: "unix:/nonexistent"}, Hello: func() *attunev1.ControllerHello { return new(attunev1.ControllerHello) },
		Undelivered: func(Loss) { returned++ },
	})
	if err != nil {
		t.Fatal(err)
	}
	for i := range eventQueue {
		if !c.TryPublish(&attunev1.PublishRequest{}) {
			t.Fatalf("message %d refused with room left", i)
		}
	}
	if c.TryPublish(&attunev1.PublishRequest{}) {
		t.Error("a full queue takes one more")
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := c.Publish(ctx, &attunev1.PublishRequest{}); !errors.Is(err, context.Canceled) || returned != 1 {
		t.Errorf("publish: %v, and %d messages are handed back, want 1", err, returned)
	}
	if err := c.Run(ctx, nil); err == nil {
		t.Error("run with a done context succeeded")
	}
	if returned != eventQueue+1 {
		t.Errorf("%d messages are handed back, want the %d that waited and 1", returned, eventQueue)
	}
}

func TestReasonOfABrokenStreamIsReported(t *testing.T) {
	a := newAnalyzer()
	a.refuse = status.Error(codes.PermissionDenied, "not your session")
	c := mustClient(t, serve(t, a))
	err := c.Run(context.Background(), func(context.Context, *attunev1.ManageResponse) {})
	if status.Code(err) != codes.PermissionDenied {
		// errors.Join keeps the status reachable through errors.As.
		t.Errorf("run: %v, want the analyzer's reason", err)
	}
}
