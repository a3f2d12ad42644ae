// SPDX-License-Identifier: Apache-2.0

package link

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"

	"github.com/attune-hpc/attune/internal/testing/patience"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// finder says what it is told to say.
type finder struct {
	mu      sync.Mutex
	address string
	moved   chan struct{}
}

func (f *finder) Find(context.Context) (Peer, <-chan struct{}, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.address == "" {
		return Peer{}, nil, errors.New("nobody has it")
	}
	return Peer{Address: f.address}, f.moved, nil
}

func (f *finder) move(address string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	close(f.moved)
	f.address, f.moved = address, make(chan struct{})
}

// roaming is a Client that finds its Analyzer, and what it was told of that.
type roaming struct {
	*Client
	finder *finder
	opened chan struct{}
	lost   chan struct{}
	ran    chan error
	ends   error        // what Run returns
	hellos atomic.Int32 // one for each time that it tries
	asked  chan string  // ids of requests

	undelivered, records atomic.Int32
}

func mustRoam(t *testing.T, address string, silence time.Duration) *roaming {
	t.Helper()
	r := &roaming{
		finder: &finder{address: address, moved: make(chan struct{})},
		opened: make(chan struct{}, 100), lost: make(chan struct{}, 100), ran: make(chan error, 1),
		asked: make(chan string, 100),
	}
	var err error
	r.Client, err = New(Options{
		Finder: r.finder,
		Hello: func() *attunev1.ControllerHello {
			return &attunev1.ControllerHello{ControllerId: fmt.Sprintf("c%d", r.hellos.Add(1))}
		},
		Living: func() []uint64 { return []uint64{7} },
		Opened: func(send func(*attunev1.PublishRequest) error, open func()) {
			for range 3 * eventQueue { // more than fits the queue
				if err := send(started()); err != nil {
					return
				}
			}
			open()
			r.opened <- struct{}{}
		},
		Lost:        func() { r.lost <- struct{}{} },
		Undelivered: func(loss Loss) { r.undelivered.Add(1); r.records.Add(int32(loss.Records)) },
		pause:       pauses{first: time.Millisecond, longest: 10 * time.Millisecond, silence: silence, refusal: time.Microsecond},
	})
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		r.ran <- r.Run(context.Background(), func(_ context.Context, m *attunev1.ManageResponse) {
			select {
			case r.asked <- m.GetRequestId():
			default: // the test has seen enough
			}
		})
	}()
	t.Cleanup(func() {
		r.Finish()
		if err := <-r.ran; !errors.Is(err, r.ends) {
			t.Errorf("run: %v, want %v", err, r.ends)
		}
	})
	return r
}

func started() *attunev1.PublishRequest {
	return &attunev1.PublishRequest{Event: &attunev1.PublishRequest_ProcessStarted{ProcessStarted: &attunev1.Process{Handle: 7}}}
}

// big is an Analyzer whose messages need not be read by the test.
func big() *analyzer {
	a := newAnalyzer()
	a.messages = make(chan *attunev1.PublishRequest, 100*eventQueue)
	return a
}

// checkRetold checks that an Analyzer hears what it has to know before anything
// else, and once.
func checkRetold(t *testing.T, a *analyzer, id string) {
	t.Helper()
	hello := (<-a.messages).GetHello()
	if hello.GetControllerId() != id || len(hello.GetProcesses()) != 1 || hello.GetProcesses()[0] != 7 {
		t.Errorf("first message is %v, want the hello of %s with process 7 living", hello, id)
	}
	for i := range 3 * eventQueue {
		if m := <-a.messages; m.GetProcessStarted().GetHandle() != 7 {
			t.Fatalf("message %d is %v, want process 7 again", i, m)
		}
	}
	if hello := (<-a.answers).GetHello(); hello.GetControllerId() != id {
		t.Errorf("management channel begins with %v", hello)
	}
}

// heardFrom takes a log and says when the first message of the Analyzer has come.
type heardFrom chan struct{}

func (h heardFrom) Write(line []byte) (int, error) {
	if bytes.Contains(line, []byte("connected to the analyzer")) {
		h <- struct{}{}
	}
	return len(line), nil
}

// What the Analyzer asks for before it has been told of everything is answered.
func TestRequestBeforeTheConnectionIsOpen(t *testing.T) {
	a := big()
	came, asked := make(heardFrom, 1), make(chan error, 1)
	c, err := New(Options{
		Log:    slog.New(slog.NewTextHandler(came, nil)),
		Finder: &finder{address: serve(t, a)},
		Hello:  func() *attunev1.ControllerHello { return new(attunev1.ControllerHello) },
		Opened: func(_ func(*attunev1.PublishRequest) error, open func()) {
			select { // a request comes with the connection
			case <-came:
			case <-time.After(patience.Limit):
				t.Error("nothing came before the connection was open")
			}
			open()
		},
		Lost: func() {},
	})
	if err != nil {
		t.Fatal(err)
	}
	ran := make(chan error, 1)
	go func() {
		ran <- c.Run(context.Background(), func(ctx context.Context, _ *attunev1.ManageResponse) {
			asked <- c.Answer(ctx, new(attunev1.ManageRequest))
		})
	}()
	if err := <-asked; err != nil {
		t.Errorf("answer: %v", err)
	}
	c.Finish()
	if err := <-ran; err != nil {
		t.Error(err)
	}
}

// What has happened of itself between the hello and the time when the connection is open, the
// Analyzer hears: the hello did not have it. What another Analyzer asked for is not for this one.
func TestNewsBeforeTheConnectionIsOpen(t *testing.T) {
	result := func(request string) *attunev1.ManageRequest {
		return &attunev1.ManageRequest{Message: &attunev1.ManageRequest_Result{Result: &attunev1.ActionResult{RequestId: request, ChangeId: "c1"}}}
	}
	for name, tt := range map[string]struct {
		message *attunev1.ManageRequest
		want    error
	}{
		"taken over": {&attunev1.ManageRequest{Message: &attunev1.ManageRequest_TakenOver{
			TakenOver: &attunev1.TakenOver{Changes: []string{"c1"}},
		}}, nil},
		"lapsed":     {result(""), nil},
		"asked for":  {result("r1"), ErrNotConnected},
		"done":       {&attunev1.ManageRequest{Message: &attunev1.ManageRequest_Done{Done: &attunev1.RequestDone{RequestId: "r1"}}}, ErrNotConnected},
		"own status": {&attunev1.ManageRequest{Message: &attunev1.ManageRequest_Status{Status: new(attunev1.ControllerStatus)}}, ErrNotConnected},
	} {
		t.Run(name, func(t *testing.T) {
			a := big()
			said := make(chan error, 1)
			var c *Client
			var err error
			c, err = New(Options{
				Finder: &finder{address: serve(t, a)},
				Hello:  func() *attunev1.ControllerHello { return new(attunev1.ControllerHello) },
				Opened: func(_ func(*attunev1.PublishRequest) error, open func()) {
					said <- c.Answer(t.Context(), tt.message)
					open()
				},
				Lost: func() {},
			})
			if err != nil {
				t.Fatal(err)
			}
			ran := make(chan error, 1)
			go func() { ran <- c.Run(context.Background(), func(context.Context, *attunev1.ManageResponse) {}) }()
			if err := patience.Receive(t, "the news", said); !errors.Is(err, tt.want) {
				t.Errorf("answer: %v, want %v", err, tt.want)
			}
			c.Finish()
			if err := patience.Receive(t, "the end", ran); err != nil {
				t.Error(err)
			}
			want := []*attunev1.ManageRequest{tt.message}
			if tt.want != nil {
				want = nil
			}
			if hello := <-a.answers; hello.GetHello() == nil {
				t.Errorf("the Analyzer hears %v at first", hello)
			}
			close(a.answers)
			var got []*attunev1.ManageRequest
			for m := range a.answers {
				got = append(got, m)
			}
			if diff := cmp.Diff(want, got, protocmp.Transform()); diff != "" {
				t.Errorf("the Analyzer hears: %s", diff)
			}
		})
	}
}

// The session moves to another Analyzer, and back to one that is there again.
func TestClientFollowsTheAnalyzer(t *testing.T) {
	one, two := big(), big()
	r := mustRoam(t, "", time.Minute)
	if err := r.Publish(t.Context(), started()); !errors.Is(err, ErrNotConnected) {
		t.Errorf("publish to nobody: %v", err)
	}
	if r.TryPublish(started()) {
		t.Error("records for nobody are taken")
	}
	if n := r.undelivered.Load(); n != 1 {
		t.Errorf("%d messages are handed back, want the one that was published", n)
	}
	r.finder.move(serve(t, one))
	<-r.opened
	checkRetold(t, one, "c1")
	r.finder.move(serve(t, two))
	<-r.lost
	<-r.opened
	checkRetold(t, two, "c2")
	if err := r.Publish(t.Context(), started()); err != nil {
		t.Errorf("publish to the second analyzer: %v", err)
	}
	if m := <-two.messages; m.GetProcessStarted() == nil {
		t.Errorf("second analyzer received %v", m)
	}
}

// An Analyzer that says nothing for too long is not there, whatever TCP thinks.
func TestSilentAnalyzerIsLeft(t *testing.T) {
	r := mustRoam(t, serve(t, big()), 500*time.Millisecond) // it makes one request, at the start
	for range 2 {
		<-r.opened
		<-r.lost
	}
}

// One that takes long to hear of everything is not silent.
func TestSlowAnalyzerIsNotLeft(t *testing.T) {
	const silence = 100 * time.Millisecond
	a := big()
	opened := make(chan struct{}, 100)
	c, err := New(Options{
		Finder: &finder{address: serve(t, a)},
		Hello:  func() *attunev1.ControllerHello { return new(attunev1.ControllerHello) },
		Opened: func(send func(*attunev1.PublishRequest) error, open func()) {
			for began := time.Now(); time.Since(began) < 5*silence; {
				if send(started()) != nil {
					return
				}
				select {
				case <-a.messages:
				case <-time.After(silence):
				}
			}
			for range 2 * eventQueue { // a connection that is given up takes no more than fits the queue
				if send(started()) != nil {
					return
				}
			}
			open()
			opened <- struct{}{}
		},
		Lost:  func() {},
		pause: pauses{first: time.Millisecond, longest: 10 * time.Millisecond, silence: silence, refusal: time.Microsecond},
	})
	if err != nil {
		t.Fatal(err)
	}
	ran := make(chan error, 1)
	go func() { ran <- c.Run(context.Background(), func(context.Context, *attunev1.ManageResponse) {}) }()
	patience.Receive(t, "a connection that opens", opened)
	c.Finish()
	if err := patience.Receive(t, "the end", ran); err != nil {
		t.Error(err)
	}
}

// What waits for an Analyzer that goes is handed back, each message once, and so is what
// was on its way, if the Analyzer says what it has taken.
func TestConnectionThatBreaks(t *testing.T) {
	const before, taken, records = 1 + 3*eventQueue, 10, 1000 // it is told that many messages before
	tests := []struct {
		name        string
		says        func(taken uint64) *uint64
		least, most func(sent int) int // messages that are lost
	}{
		{
			"it says what it has taken", proto.Uint64,
			func(sent int) int { return sent - taken }, func(sent int) int { return sent - taken },
		},
		{
			"it does not", func(uint64) *uint64 { return nil },
			func(int) int { return eventQueue / 2 }, func(sent int) int { return sent - taken },
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			stuck := newAnalyzer()
			stuck.request.EventsTaken = test.says(0)
			stuck.messages = make(chan *attunev1.PublishRequest) // it reads no more than is asked for
			r := mustRoam(t, "", time.Minute)
			r.finder.move(serve(t, stuck))
			for range before {
				<-stuck.messages
			}
			<-r.opened
			sent := 0
			for batch := make([]byte, 32*records); r.TryPublish(recorded(batch)); {
				sent++ // until neither the connection nor the queue takes more
			}
			for range taken {
				<-stuck.messages
			}
			stuck.requests <- &attunev1.ManageResponse{EventsTaken: test.says(before + taken - 1)}
			stuck.requests <- &attunev1.ManageResponse{RequestId: "r2", EventsTaken: test.says(before + taken)}
			var asked []string
			for !slices.Contains(asked, "r2") {
				asked = append(asked, patience.Receive(t, "the request that follows", r.asked))
			}
			if test.says(0) != nil && !slices.Equal(asked, []string{"r1", "r2"}) {
				t.Errorf("requests %q are handled, want the two that there are", asked)
			}
			close(stuck.gone)
			<-r.lost
			if n := int(r.undelivered.Load()); n < test.least(sent) || n > test.most(sent) {
				t.Errorf("%d messages of %d are handed back, want %d to %d", n, sent, test.least(sent), test.most(sent))
			}
			if n := r.records.Load(); n != records*r.undelivered.Load() {
				t.Errorf("%d records are lost in %d messages, want %d in each", n, r.undelivered.Load(), records)
			}
		})
	}
}

func recorded(batch []byte) *attunev1.PublishRequest {
	records := &attunev1.RecordBatch{Records: batch, RecordCount: attunev1.CountRecords(batch)}
	return &attunev1.PublishRequest{Event: &attunev1.PublishRequest_Records{Records: records}}
}

// One that refuses is tried again, and the reason of the refusal is not lost.
func TestRefusingAnalyzerIsTriedAgain(t *testing.T) {
	a := big()
	a.refuse = status.Error(codes.PermissionDenied, "not your session")
	mustRoam(t, serve(t, a), time.Minute)
	for range 3 {
		<-a.answers // a hello
	}
	a.mu.Lock()
	a.refuse = nil
	a.mu.Unlock()
	if m := <-a.messages; m.GetHello() == nil {
		t.Errorf("the first message is %v, want a hello", m)
	}
}

// One that says that there is no such session is believed when it says so again.
func TestSessionThatIsOver(t *testing.T) {
	a := big()
	a.request = nil
	a.refuse = status.Error(codes.NotFound, "no such registration")
	r := mustRoam(t, serve(t, a), time.Minute)
	r.ends = ErrOver
	err := <-r.ran
	if tries := r.hellos.Load(); tries < maxRefusals {
		t.Errorf("believed after %d tries, want %d", tries, maxRefusals)
	}
	if !errors.Is(err, ErrOver) || status.Code(err) != codes.NotFound {
		t.Errorf("run: %v, want the end of the session with its reason", err)
	}
	r.ran <- err
}

func TestPausesGrowToABound(t *testing.T) {
	p := pauses{}.withDefaults()
	for failed := range 100 {
		want := p.longest
		if failed < 7 { // 6.4 s
			want = p.first << failed
		}
		if got := p.after(failed); got < want/2 || got > want {
			t.Errorf("pause after %d attempts in vain: %v, want %v to %v", failed, got, want/2, want)
		}
	}
}
