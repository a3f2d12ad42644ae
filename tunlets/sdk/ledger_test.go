// SPDX-License-Identifier: Apache-2.0

package sdk_test

import (
	"slices"
	"testing"

	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
	"github.com/attune-hpc/attune/tunlets/sdk"
)

// sums keeps the aggregates that it is told of, and knows nothing of points.
type sums struct {
	bare
	last    sdk.Aggregates
	removes bool
}

func (s *sums) HandleAggregates(h *sdk.Host, a sdk.Aggregates) {
	s.last = a
	if s.removes {
		h.RemovePoint("calls")
	}
}

// ledgerRig is a server with two processes on host a and one on host b.
type ledgerRig struct {
	t      *testing.T
	tunlet *sums
	server attunev1.TunletServiceServer
	now    int64
}

func newLedgerRig(t *testing.T) *ledgerRig {
	t.Helper()
	r := &ledgerRig{t: t, tunlet: &sums{}}
	r.server = sdk.NewServer(func() sdk.Tunlet { return r.tunlet }, sdk.ServerOptions{})
	for handle, host := range map[uint64]string{1: "a", 2: "a", 3: "b"} {
		_, err := r.server.ProcessStarted(t.Context(), &attunev1.ProcessStartedRequest{Process: &attunev1.Process{Handle: handle, Host: host}})
		r.check(err)
		r.status(handle, attunev1.PointState_POINT_STATE_PLACED)
	}
	return r
}

// check fails where a call is refused: the Analyzer would not make it again.
func (r *ledgerRig) check(err error) {
	r.t.Helper()
	if err != nil {
		r.t.Fatal(err)
	}
}

func (r *ledgerRig) status(process uint64, state attunev1.PointState) {
	r.t.Helper()
	_, err := r.server.PointChanged(r.t.Context(), &attunev1.PointChangedRequest{
		PointId: "calls", Status: &attunev1.PointStatus{Point: 1, Process: process, State: state},
	})
	r.check(err)
}

// interval delivers one with entries of the given processes, and checks which
// are unknown in it.
func (r *ledgerRig) interval(what string, processes []uint64, unknown ...sdk.Handle) {
	r.t.Helper()
	r.now++
	r.batch(what, r.now, processes, unknown...)
}

func (r *ledgerRig) batch(what string, from int64, processes []uint64, unknown ...sdk.Handle) {
	r.t.Helper()
	req := &attunev1.HandleEventsRequest{FromUnixNano: from * 1e9, ToUnixNano: r.now*1e9 + 1e9}
	for _, p := range processes {
		req.Aggregates = append(req.Aggregates, &attunev1.NamedAggregate{PointId: "calls", Aggregate: &attunev1.Aggregate{Point: 1, Process: p}})
	}
	_, err := r.server.HandleEvents(r.t.Context(), req)
	r.check(err)
	if got := r.tunlet.last.Unknown; !slices.Equal(got, unknown) {
		r.t.Errorf("%s: unknown %v, want %v", what, got, unknown)
	}
	for _, p := range []sdk.Handle{1, 2, 3} {
		if known := r.tunlet.last.Known(p); known == slices.Contains(unknown, p) {
			r.t.Errorf("%s: process %d known: %v", what, p, known)
		}
	}
}

func TestWhatIsOffIsUnknown(t *testing.T) {
	r := newLedgerRig(t)
	r.interval("first", []uint64{1, 2})
	r.interval("all on a", []uint64{1, 2})
	r.interval("all on b", []uint64{3})
	r.status(2, attunev1.PointState_POINT_STATE_OFF)
	r.interval("off during it", []uint64{1, 2}, 2)
	r.interval("off", []uint64{1}, 2)
	r.interval("off, the other host", []uint64{3})
	r.status(2, attunev1.PointState_POINT_STATE_PLACED)
	r.interval("not yet back", []uint64{1}, 2)
	r.interval("back during it", []uint64{1, 2}, 2)
	r.interval("back", []uint64{1, 2})
}

func TestWhatIsMissingIsUnknown(t *testing.T) {
	r := newLedgerRig(t)
	r.interval("all", []uint64{1, 2})
	r.now++
	r.batch("one is told of before the end of the interval", r.now, []uint64{2}, 1)
	r.batch("rest of the interval", r.now, []uint64{1, 2}, 2)
	r.interval("next one", []uint64{1, 2})
}

func TestWhatIsGoneIsNotMissed(t *testing.T) {
	r := newLedgerRig(t)
	r.interval("all", []uint64{1, 2})
	r.status(2, attunev1.PointState_POINT_STATE_REMOVED)
	r.interval("taken away", []uint64{1})
	r.status(2, attunev1.PointState_POINT_STATE_PLACED)
	r.interval("placed anew", []uint64{1, 2})
	_, err := r.server.ProcessEnded(t.Context(), &attunev1.ProcessEndedRequest{Ended: &attunev1.ProcessEnded{Process: 2}})
	r.check(err)
	r.tunlet.removes = true
	r.interval("ended", []uint64{1})
	r.interval("given back", []uint64{3})
}

// giver gives a point of signed values back with its first samples.
type giver struct{ sums }

func (*giver) ApplicationStarted(h *sdk.Host, _ sdk.Application) {
	h.AddPoint(sdk.Point{ID: "calls", Symbols: []string{"f"}, Place: sdk.Exit, Captures: []sdk.Capture{sdk.Returned("r", sdk.I64)}, Value: "r"})
}

func (*giver) HandleSamples(h *sdk.Host, _ sdk.Samples) { h.RemovePoint("calls") }

// Values of a point that was given back are read as before: in the batch with the samples, and
// in those that were on their way.
func TestSignedAfterItWasGivenBack(t *testing.T) {
	g := &giver{}
	server := sdk.NewServer(func() sdk.Tunlet { return g }, sdk.ServerOptions{})
	if _, err := server.ApplicationStarted(t.Context(), &attunev1.ApplicationStartedRequest{}); err != nil {
		t.Fatal(err)
	}
	for _, samples := range []*attunev1.SampleBatch{{}, nil} {
		if _, err := server.HandleEvents(t.Context(), &attunev1.HandleEventsRequest{
			Samples: samples, FromUnixNano: 1e9, ToUnixNano: 2e9,
			Aggregates: []*attunev1.NamedAggregate{{PointId: "calls", Aggregate: &attunev1.Aggregate{Process: 1, Count: 1}}},
		}); err != nil {
			t.Fatal(err)
		}
		if items := g.last.Items; len(items) != 1 || !items[0].Signed {
			t.Errorf("with samples %v: %+v, want a signed one", samples, items)
		}
	}
}
