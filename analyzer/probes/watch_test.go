// SPDX-License-Identifier: Apache-2.0

package probes

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/attune-hpc/attune/analyzer/fold"
	"github.com/attune-hpc/attune/analyzer/session"
	"github.com/attune-hpc/attune/internal/testing/patience"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// client is one that watches, and what it was sent.
type client struct {
	grpc.ServerStream

	ctx context.Context
	got chan *attunev1.WatchProbesResponse
}

func (c *client) Context() context.Context { return c.ctx }

func (c *client) Send(m *attunev1.WatchProbesResponse) error {
	c.got <- m
	return nil
}

// deaf is a management channel to nobody.
type deaf struct{}

func (deaf) Send(*attunev1.ManageResponse) bool { return true }

// TestWatchEnds: a watch ends with the last process, also where nobody has answered for its
// point or all its points were refused, and says so when the session ends before that.
func TestWatchEnds(t *testing.T) {
	for _, tt := range []struct {
		name   string
		points int
		end    func(*session.Session)
		first  int // messages before the end
		want   codes.Code
	}{
		{"its process ends before its point is answered", 1, endProcess, 0, codes.OK},
		{"its process ends, and some points are beyond the bound", 1025, endProcess, 1, codes.OK},
		{"the session ends", 1, (*session.Session).Close, 0, codes.Unavailable},
	} {
		t.Run(tt.name, func(t *testing.T) {
			account := fold.NewAccount()
			s := session.New(session.Config{ID: "s1", Sinks: []session.Sink{account}})
			var work sync.WaitGroup
			work.Go(func() { s.Run(context.Background()) })
			defer work.Wait()
			defer s.Close()
			s.ControllerConnected(&attunev1.ControllerHello{ControllerId: "ac1"}, deaf{})
			s.Publish("ac1", &attunev1.PublishRequest{Event: &attunev1.PublishRequest_ProcessStarted{
				ProcessStarted: &attunev1.Process{Handle: 1, Identity: &attunev1.ProcessIdentity{Pid: 7}},
			}})
			r := &attunev1.WatchProbesRequest{Pids: []int32{7}}
			for i := range tt.points {
				hook := fmt.Sprint("f", i)
				r.Points = append(r.Points, &attunev1.MeasurePoint{Id: hook, Target: &attunev1.MeasurePoint_Hook{Hook: hook}})
			}
			probes := New(s, account)
			c := &client{ctx: t.Context(), got: make(chan *attunev1.WatchProbesResponse, watchQueue)}
			ended := make(chan error, 1)
			go func() { ended <- probes.For(func(uint32) bool { return true }).WatchProbes(r, c) }()
			patience.Until(t, "the watch", func() bool {
				n, err := session.View(t.Context(), s, func(at time.Duration) int { return len(account.Report(at).Points) })
				return err == nil && n > 0
			})
			for range tt.first {
				patience.Receive(t, "a message", c.got)
			}
			tt.end(s)
			if err := patience.Receive(t, "the end of the watch", ended); status.Code(err) != tt.want {
				t.Errorf("it ends with %v, want %v", err, tt.want)
			}
		})
	}
}

func endProcess(s *session.Session) {
	s.Publish("ac1", &attunev1.PublishRequest{Event: &attunev1.PublishRequest_ProcessEnded{ProcessEnded: &attunev1.ProcessEnded{Process: 1}}})
}
