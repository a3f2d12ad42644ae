// SPDX-License-Identifier: Apache-2.0

package service

import (
	"slices"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/attune-hpc/attune/internal/testing/patience"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// TestProbes has people measure in the processes of a session: in their own, and in
// no others.
func TestProbes(t *testing.T) {
	p := newPlace(t)
	a := p.analyzer("a", nil)
	annsID, bobsID := p.pki.User(t, "ann", annUID), p.pki.User(t, "bob", bobUID)
	ann := p.people(annsID, a)
	id := register(t, a, ann, &attunev1.Registration{Executable: "solver", Mode: "observe"})
	c := p.dial(a, hello("n1", id, job), 1)
	c.publish(&attunev1.PublishRequest{Event: &attunev1.PublishRequest_ProcessStarted{ProcessStarted: &attunev1.Process{
		Handle: 2, Identity: &attunev1.ProcessIdentity{Pid: 2}, Host: "n1", Uid: bobUID,
	}}})
	is(t, ann, "slurm/12 SESSION_STATE_RUNNING [n1] 2/2 [solver in.dat]")

	point := &attunev1.MeasurePoint{Id: "libc.so.6:malloc", Target: &attunev1.MeasurePoint_Hook{Hook: "malloc"}}
	anns, bobs := attunev1.NewProbeServiceClient(p.as(annsID, a)), attunev1.NewProbeServiceClient(p.as(bobsID, a))
	for _, tt := range []struct {
		name   string
		client attunev1.ProbeServiceClient
		watch  *attunev1.WatchProbesRequest
		want   codes.Code
	}{
		{"no session is named", anns, &attunev1.WatchProbesRequest{Pids: []int32{1}}, codes.InvalidArgument},
		{"somebody else's session", bobs, &attunev1.WatchProbesRequest{Session: id, Pids: []int32{1}}, codes.NotFound},
		{"somebody else's process in it", bobs, &attunev1.WatchProbesRequest{Session: id, Pids: []int32{2}}, codes.NotFound},
		{"bob's process in ann's session", anns, &attunev1.WatchProbesRequest{Session: id, Pids: []int32{2}}, codes.NotFound},
		{"another host", anns, &attunev1.WatchProbesRequest{Session: id, Host: "n2", Pids: []int32{1}}, codes.NotFound},
		{"nothing was added", anns, &attunev1.WatchProbesRequest{Session: id, Host: "n1", Pids: []int32{1}}, codes.FailedPrecondition},
	} {
		t.Run(tt.name, func(t *testing.T) {
			stream, err := tt.client.WatchProbes(t.Context(), tt.watch)
			if err == nil {
				_, err = stream.Recv()
			}
			if status.Code(err) != tt.want {
				t.Errorf("%v, want %v", err, tt.want)
			}
		})
	}
	added := make(chan *attunev1.AddProbesResponse, 1)
	go func() {
		resp, err := anns.AddProbes(t.Context(), &attunev1.AddProbesRequest{Session: id, Pids: []int32{1}, Points: []*attunev1.MeasurePoint{point}})
		if err != nil {
			t.Errorf("add: %v", err)
		}
		added <- resp
	}()
	index := c.request(func(r *attunev1.ManageResponse) bool { return len(r.GetWant().GetPoints()) > 0 }).GetWant().GetPoints()[0].GetIndex()
	c.send(&attunev1.ManageRequest{Message: &attunev1.ManageRequest_Point{Point: &attunev1.PointStatus{
		Point: index, Process: 1, State: attunev1.PointState_POINT_STATE_PLACED,
	}}})
	if probes := patience.Receive(t, "the answer", added).GetProbes(); len(probes) != 1 || probes[0].GetNumber() != 1 || probes[0].GetStatus().GetState() != attunev1.PointState_POINT_STATE_PLACED {
		t.Errorf("added %v", probes)
	}
	stream, err := anns.WatchProbes(t.Context(), &attunev1.WatchProbesRequest{Session: id, Pids: []int32{1}})
	if err != nil {
		t.Fatal(err)
	}
	first, err := stream.Recv()
	if err != nil || first.GetProbe().GetText() != point.GetId() {
		t.Fatalf("watched %v, %v", first, err)
	}
	c.publish(&attunev1.PublishRequest{Event: &attunev1.PublishRequest_Aggregates{Aggregates: &attunev1.AggregateBatch{
		ToUnixNano: 1, Aggregates: []*attunev1.Aggregate{{Point: index, Process: 1, Count: 5}},
	}}})
	if seen, err := stream.Recv(); err != nil || seen.GetHits().GetAggregates()[0].GetAggregate().GetCount() != 5 {
		t.Errorf("watched %v, %v", seen, err)
	}
	listed, err := anns.ListProbes(t.Context(), &attunev1.ListProbesRequest{Session: id})
	if err != nil || !slices.Equal(listed.GetPids(), []int32{1}) || len(listed.GetProbes()) != 2 {
		t.Errorf("listed %v, %v", listed, err)
	}
	gone, err := anns.RemoveProbes(t.Context(), &attunev1.RemoveProbesRequest{Session: id, Probes: []string{"1"}})
	if err != nil || len(gone.GetProbes()) != 1 {
		t.Errorf("removed %v, %v", gone, err)
	}
	c.leave()
	for {
		if _, err := stream.Recv(); err != nil {
			break // with its processes
		}
	}
}
