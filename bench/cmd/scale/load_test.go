// SPDX-License-Identifier: Apache-2.0

package main

import (
	"net"
	"slices"
	"sync/atomic"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/attune-hpc/attune/bench/internal/present"
	"github.com/attune-hpc/attune/internal/testing/patience"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// fickle is an Analyzer that tells the first controller to come again, asks for nothing,
// and when tired is closed ends one of so many streams that it has taken; 0: none.
type fickle struct {
	attunev1.UnimplementedEventServiceServer
	attunev1.UnimplementedManagementServiceServer

	ends          int64
	tired         chan struct{}
	came, streams atomic.Int64
}

// hold returns when a stream ends, or is ended.
func (f *fickle) hold(stream grpc.ServerStream) error {
	if n := f.streams.Add(1); f.ends > 0 && n%f.ends == 0 {
		<-f.tired
		return status.Error(codes.ResourceExhausted, "enough")
	}
	<-stream.Context().Done()
	return nil
}

// Publish implements attunev1.EventServiceServer.
func (f *fickle) Publish(stream grpc.ClientStreamingServer[attunev1.PublishRequest, attunev1.PublishResponse]) error {
	return f.hold(stream)
}

// Manage implements attunev1.ManagementServiceServer.
func (f *fickle) Manage(stream grpc.BidiStreamingServer[attunev1.ManageRequest, attunev1.ManageResponse]) error {
	if _, err := stream.Recv(); err != nil {
		return err
	}
	if f.came.Add(1) == 1 {
		return status.Error(codes.Unavailable, "not yet")
	}
	if err := stream.Send(&attunev1.ManageResponse{Request: &attunev1.ManageResponse_Want{Want: &attunev1.Want{}}}); err != nil {
		return err
	}
	return f.hold(stream)
}

// A stream that the Analyzer ends is no stream that it serves.
func TestEndedStreamsMiss(t *testing.T) {
	const controllers = 4
	for _, tt := range []struct {
		name        string
		ends, ended int64
		met         bool
	}{
		{"all served", 0, 0, true},
		{"every second stream ended", 2, controllers, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			lis, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			server, f := grpc.NewServer(), &fickle{ends: tt.ends, tired: make(chan struct{})}
			attunev1.RegisterEventServiceServer(server, f)
			attunev1.RegisterManagementServiceServer(server, f)
			served := make(chan error, 1)
			go func() { served <- server.Serve(lis) }()
			defer func() {
				server.Stop()
				if err := <-served; err != nil {
					t.Error(err)
				}
			}()
			a := &analyzer{address: lis.Addr().String(), credentials: insecure.NewCredentials()}
			l := (&load{analyzer: a, sessions: 1, processes: 1, measured: aggregates}).start()
			if err := l.grow(t.Context(), controllers); err != nil {
				t.Fatal(err)
			}
			patience.Until(t, "all streams", func() bool { return f.streams.Load() == 2*controllers })
			close(f.tired)
			patience.Until(t, "the end of streams", func() bool { return l.ended.Load() >= tt.ended })
			l.close()
			d := &document{Processes: 1, Points: 1}
			goal := mustFind(t, d.goals(step{Controllers: controllers, Ended: l.ended.Load()}), "streams that ended")
			if goal.Met() != tt.met || int64(goal.Value) != tt.ended {
				t.Errorf("%v streams ended, met: %v; want %d", goal.Value, goal.Met(), tt.ended)
			}
		})
	}
}

// What is not taken is missed, though nothing was lost.
func TestAggregatesThatAreNotTakenMiss(t *testing.T) {
	d := &document{Processes: 10, Points: 10}
	for perSecond, met := range map[float64]bool{0: false, 90_000: false, 95_000: true} {
		goal := mustFind(t, d.goals(step{Controllers: 1000, PerSecond: perSecond}), "aggregates taken / sent")
		if goal.Met() != met {
			t.Errorf("%v a second: %s", perSecond, goal.Verdict())
		}
	}
}

// mustFind returns the goal of a name.
func mustFind(t *testing.T, goals []present.Goal, name string) present.Goal {
	t.Helper()
	i := slices.IndexFunc(goals, func(g present.Goal) bool { return g.Name == name })
	if i < 0 {
		t.Fatalf("no goal %q", name)
	}
	return goals[i]
}
