// SPDX-License-Identifier: Apache-2.0

package tunlettest

import (
	"cmp"
	"context"
	"net"
	"slices"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"

	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
	"github.com/attune-hpc/attune/tunlets/sdk"
	"github.com/attune-hpc/attune/tunlets/sdk/feed"
	"github.com/attune-hpc/attune/tunlets/sdk/samplefilter"
)

const (
	// Period is the time between two rounds of samples, aggregates and ticks.
	Period = 50 * time.Millisecond

	// callTimeout bounds one call; a tunlet that takes longer hangs.
	callTimeout = time.Minute
	// bufferBytes is the connection's buffer.
	bufferBytes = 256 << 10
	// maxReactions bounds the calls that one call leads to (points that are
	// placed lead to calls that may ask for points).
	maxReactions = 10000
)

// begin is when simulated time begins.
func begin() time.Time { return time.Unix(1_700_000_000, 0) }

// Harness drives one tunlet. What the tunlet wanted is kept in the exported
// fields, in order.
type Harness struct {
	// Client calls the tunlet directly, for what the Harness has no method for.
	// Its reactions must be given to React.
	Client attunev1.TunletServiceClient
	// Options are handed to Configure by StartSession.
	Options map[string]string
	// Mode of the session; empty: tune.
	Mode string
	// Pace is the time between two rounds, as of a controller that may not take samples
	// more often; 0: Period.
	Pace time.Duration
	// Explain asks the tunlet why it decides as it does.
	Explain bool
	// Refuse, if set, says why a measure point cannot be placed in a process;
	// empty: it can.
	Refuse func(point *attunev1.MeasurePoint, p *Process) string
	// Unanswered, if set, says whether nothing is said of a measure point in a process for
	// now, as while DMLib is being brought into it: it is asked again in each Round.
	Unanswered func(point *attunev1.MeasurePoint, p *Process) bool
	// Mechanism and CostNanos are how placed points are said to be served.
	Mechanism string
	CostNanos float64

	// Proposals are all proposals that were made.
	Proposals []Proposed
	// Withdrawals are all withdrawals.
	Withdrawals []Withdrawn
	// Objectives are all samples of the objective.
	Objectives []*attunev1.ObjectiveSample
	// Remarks are all remarks.
	Remarks []*attunev1.Remark
	// Explanations are what the tunlet said by Host.Explain.
	Explanations []*attunev1.Remark
	// Delivered is how often the tunlet was woken with samples or aggregates.
	Delivered int

	tb        TB
	serve     func(tb TB) attunev1.TunletServiceClient // starts another tunlet
	checking  bool                                     // check proposals as they come
	trouble   []func() *Process
	now       time.Time
	points    map[string]*point
	order     []string
	lastPoint uint32
	processes []*Process
	handle    sdk.Handle
	feed      feed.Feed
	described *attunev1.DescribeResponse
	wakes     samplefilter.Wakes // has the tunlet as long as it would sleep
}

// Proposed is a proposal and when it was made.
type Proposed struct {
	*attunev1.Proposal
	// At is simulated time since the Harness was made.
	At time.Duration
}

// Withdrawn is a withdrawal and when it was made.
type Withdrawn struct {
	*attunev1.Withdrawal
	// At is simulated time since the Harness was made.
	At time.Duration
}

// New serves a tunlet over gRPC as its process would, and connects to it. The
// connection ends with the test.
func New(tb TB, newTunlet func() sdk.Tunlet) *Harness {
	tb.Helper()
	return newHarness(tb, func(tb TB) attunev1.TunletServiceClient { return serve(tb, newTunlet) })
}

// Start is New, and opens a session with the options and starts the processes. What else the
// session depends on, such as Mode, has to be set after New instead.
func Start(tb TB, newTunlet func() sdk.Tunlet, options map[string]string, processes ...*Process) *Harness {
	tb.Helper()
	h := New(tb, newTunlet)
	h.Options = options
	h.StartSession()
	for _, p := range processes {
		h.StartProcess(p)
	}
	return h
}

func newHarness(tb TB, serve func(tb TB) attunev1.TunletServiceClient) *Harness {
	return &Harness{
		Client: serve(tb), serve: serve, Mechanism: "hook", CostNanos: 8,
		tb: tb, now: begin(), points: map[string]*point{},
	}
}

// serve serves a tunlet in this process and returns its client, over gRPC in memory:
// go-plugin's own test connection stops its server from two sides at once.
func serve(tb TB, newTunlet func() sdk.Tunlet) attunev1.TunletServiceClient {
	tb.Helper()
	listener := bufconn.Listen(bufferBytes)
	server := grpc.NewServer(grpc.MaxRecvMsgSize(sdk.MaxMessage))
	attunev1.RegisterTunletServiceServer(server, sdk.NewServer(newTunlet, sdk.ServerOptions{
		Crashed: func(report string) { tb.Errorf("tunlet crashed: %s", report) },
	}))
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	connection, err := grpc.NewClient("passthrough:tunlet",
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return listener.DialContext(ctx) }))
	if err != nil {
		tb.Fatalf("connect: %v", err)
	}
	tb.Cleanup(func() {
		if err := connection.Close(); err != nil {
			tb.Errorf("close: %v", err)
		}
		server.Stop()
		if err := <-served; err != nil {
			tb.Errorf("serve: %v", err)
		}
	})
	return attunev1.NewTunletServiceClient(connection)
}

// Context is the context for one call.
func (h *Harness) Context() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), callTimeout)
}

// Now is simulated time.
func (h *Harness) Now() time.Time { return h.now }

// Elapsed is simulated time since the Harness was made.
func (h *Harness) Elapsed() time.Duration { return h.now.Sub(begin()) }

// Processes are those that live, in the order in which they started.
func (h *Harness) Processes() []*Process { return slices.Clone(h.processes) }

// reactor is any response that carries a reaction.
type reactor interface{ GetReaction() *attunev1.Reaction }

// call makes one call. A tunlet that is not interested is no error.
func call[Q any, R reactor](h *Harness, f func(context.Context, Q) (R, error), request Q) {
	h.tb.Helper()
	ctx, cancel := h.Context()
	defer cancel()
	response, err := f(ctx, request)
	switch {
	case status.Code(err) == codes.Unimplemented:
	case err != nil:
		h.tb.Fatalf("%T: %v", request, err)
	default:
		h.React(response.GetReaction())
	}
}

// StartSession describes and configures the tunlet and opens a session.
func (h *Harness) StartSession() *attunev1.DescribeResponse {
	h.tb.Helper()
	ctx, cancel := h.Context()
	defer cancel()
	d, err := h.Client.Describe(ctx, &attunev1.DescribeRequest{ApiVersions: []string{sdk.APIVersion}})
	if err != nil {
		h.tb.Fatalf("describe: %v", err)
	}
	configure(h, h.Options)
	if h.described = d; len(d.GetWake()) > 0 {
		h.wakes.Add(d.GetName(), d.GetWake())
	}
	mode := cmp.Or(h.Mode, "tune")
	h.OpenSession(mode)
	return d
}

// configure hands the tunlet its options. One that has none is no error.
func configure(h *Harness, options map[string]string) {
	h.tb.Helper()
	ctx, cancel := h.Context()
	defer cancel()
	c, err := h.Client.Configure(ctx, &attunev1.ConfigureRequest{Options: options})
	if err != nil && status.Code(err) != codes.Unimplemented {
		h.tb.Fatalf("configure: %v", err)
	}
	if c.GetError() != "" {
		h.tb.Fatalf("configure: %s", c.GetError())
	}
}

// OpenSession opens a session, a further one if there was one before.
func (h *Harness) OpenSession(mode string) {
	h.tb.Helper()
	openSession(h, mode, h.now)
}

func openSession(h *Harness, mode string, began time.Time) {
	h.tb.Helper()
	call(h, one(h.Client.ApplicationStarted), &attunev1.ApplicationStartedRequest{
		Application: &attunev1.Application{
			SessionId: "s1", Command: []string{"./program"}, Mode: mode, TickNanos: int64(Period), Explain: h.Explain,
		},
		UnixNano: began.UnixNano(),
	})
}

// EndSession closes the session.
func (h *Harness) EndSession() {
	h.tb.Helper()
	ctx, cancel := h.Context()
	defer cancel()
	_, err := h.Client.ApplicationEnded(ctx, &attunev1.ApplicationEndedRequest{UnixNano: h.now.UnixNano()})
	if err != nil && status.Code(err) != codes.Unimplemented {
		h.tb.Fatalf("application ended: %v", err)
	}
}

// SetState tells what became of a proposal.
func (h *Harness) SetState(proposal string, s attunev1.ProposalState, reason string) {
	h.tb.Helper()
	proposalChanged(h, &attunev1.ProposalChangedRequest{ProposalId: proposal, State: s, Reason: reason})
}

// Verdict asks the tunlet for a verdict; false if it gives none.
func (h *Harness) Verdict(r *attunev1.EvaluateRequest) (*attunev1.EvaluateResponse, bool) {
	h.tb.Helper()
	ctx, cancel := h.Context()
	defer cancel()
	v, err := h.Client.Evaluate(ctx, r)
	if err != nil && status.Code(err) != codes.Unimplemented {
		h.tb.Fatalf("evaluate: %v", err)
	}
	return v, err == nil
}
