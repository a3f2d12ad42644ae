// SPDX-License-Identifier: Apache-2.0

package channel

import (
	"testing"
	"testing/synctest"

	"google.golang.org/grpc"

	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// TestTakenIsTold: with each request, and without one only when much is not told of.
func TestTakenIsTold(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		r.number = 5
		manage, controller := r.manage(t)
		told := func() *attunev1.ManageResponse {
			t.Helper()
			response, err := manage.Recv()
			if err != nil {
				t.Fatal(err)
			}
			return response
		}
		request := func(want uint64) {
			t.Helper()
			synctest.Wait() // what was published is counted
			controller.Send(&attunev1.ManageResponse{RequestId: "r"})
			if m := told(); m.GetRequestId() != "r" || m.EventsTaken == nil || m.GetEventsTaken() != want {
				t.Errorf("a request says %v, want %d messages taken", m, want)
			}
		}
		request(0)
		events := r.events(t)
		request(1) // the hello
		r.publish(t, events, acknowledgeEvery-1)
		request(acknowledgeEvery)
		r.publish(t, events, acknowledgeEvery)
		if m := told(); m.GetRequest() != nil || m.GetRequestId() != "" || m.GetEventsTaken() != 2*acknowledgeEvery {
			t.Errorf("without a request it is told %v, want %d messages taken", m, 2*acknowledgeEvery)
		}
		r.publish(t, events, 1)
		request(2*acknowledgeEvery + 1)
	})
}

// TestTakenIsOfOneConnection: whoever connects again begins anew, although the channel of
// before is still open, and nothing is kept of connections that have ended.
func TestTakenIsOfOneConnection(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		r.number = 5
		before := r.events(t)
		r.publish(t, before, 3)
		r.number = 6
		manage, controller := r.manage(t)
		after := r.events(t)
		r.publish(t, after, 1)
		r.publish(t, before, 3)
		synctest.Wait()
		controller.Send(&attunev1.ManageResponse{RequestId: "r"})
		if m, err := manage.Recv(); err != nil || m.GetEventsTaken() != 2 {
			t.Errorf("a request says %v, %v, want 2 messages taken", m, err)
		}
		for _, events := range []grpc.ClientStreamingClient[attunev1.PublishRequest, attunev1.PublishResponse]{before, after} {
			if _, err := events.CloseAndRecv(); err != nil {
				t.Error(err)
			}
		}
		if err := manage.CloseSend(); err != nil {
			t.Error(err)
		}
		synctest.Wait()
		if n := len(r.channels.event.connections.taken); n > 0 {
			t.Errorf("%d connections are kept that have ended", n)
		}
	})
}

// TestTakenIsNotWanted by a controller whose hello has no number.
func TestTakenIsNotWanted(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		manage, controller := r.manage(t)
		r.publish(t, r.events(t), 2*acknowledgeEvery)
		synctest.Wait()
		controller.Send(&attunev1.ManageResponse{RequestId: "r"})
		if m, err := manage.Recv(); err != nil || m.GetRequestId() != "r" || m.EventsTaken != nil {
			t.Errorf("it is told %v, %v", m, err)
		}
	})
}

// publish sends so many messages, and returns when the session has them.
func (r *rig) publish(t *testing.T, events grpc.ClientStreamingClient[attunev1.PublishRequest, attunev1.PublishResponse], messages int) {
	t.Helper()
	for range messages {
		if err := events.Send(&attunev1.PublishRequest{}); err != nil {
			t.Fatal(err)
		}
		<-r.session.published
	}
}
