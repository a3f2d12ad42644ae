// SPDX-License-Identifier: Apache-2.0

package channel

import (
	"context"
	"errors"
	"io"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// requestQueue bounds the requests that wait for a controller. One that lets
// more pile up does not read any more.
const requestQueue = 4096

// managementService serves the management channel.
type managementService struct {
	attunev1.UnimplementedManagementServiceServer

	route       Route
	connections *connections
	tasks       sync.WaitGroup // what reads from channels, and what writes to them
}

// stream is one management channel.
type stream = grpc.BidiStreamingServer[attunev1.ManageRequest, attunev1.ManageResponse]

// Manage carries requests to one controller, and its answers.
func (m *managementService) Manage(stream stream) error {
	first, err := stream.Recv()
	if err != nil {
		return err
	}
	hello := first.GetHello()
	session, err := m.route.find(stream.Context(), hello)
	if err != nil {
		return err
	}
	q := &requests{queued: make(chan *attunev1.ManageResponse, requestQueue), overflow: make(chan struct{})}
	taken := m.connections.join(hello.GetConnection())
	defer m.connections.leave(hello.GetConnection())
	session.ControllerConnected(hello, q)
	received, sent := make(chan error, 1), make(chan error, 1)
	// Both end with the stream.
	m.tasks.Go(func() { received <- receive(session, hello.GetControllerId(), stream) })
	m.tasks.Go(func() { sent <- q.send(stream, taken) })
	err = q.wait(stream.Context(), session, received, sent)
	session.ControllerGone(hello.GetControllerId(), q, err == nil)
	return err
}

// receive takes a controller's answers until the stream ends.
func receive(session Session, id string, stream stream) error {
	for {
		msg, err := stream.Recv()
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
		session.Manage(id, msg)
	}
}

// requests are those that wait for one controller.
type requests struct {
	queued   chan *attunev1.ManageResponse
	overflow chan struct{} // closed when there was no room
	once     sync.Once
}

// Send queues a request, or ends the channel if there is no room.
func (q *requests) Send(r *attunev1.ManageResponse) bool {
	select {
	case <-q.overflow:
		return false
	default:
	}
	select {
	case q.queued <- r:
		return true
	default:
		q.once.Do(func() { close(q.overflow) })
		return false
	}
}

// send sends what is queued until the stream ends, and what was taken of events. It waits
// for as long as the controller does not read.
func (q *requests) send(stream stream, taken *taken) error {
	for {
		var r *attunev1.ManageResponse
		select {
		case r = <-q.queued:
		case <-taken.when():
			r = &attunev1.ManageResponse{}
		case <-stream.Context().Done():
			return stream.Context().Err()
		}
		taken.tell(r)
		if err := stream.Send(r); err != nil {
			return err
		}
	}
}

// wait returns when the channel or the session ends, why. nil: the controller has
// nothing more to do here.
func (q *requests) wait(ctx context.Context, session Session, received, sent <-chan error) error {
	select {
	case err := <-received:
		return err
	case err := <-sent:
		return err
	case <-q.overflow:
		return status.Error(codes.ResourceExhausted, "the controller does not read its requests")
	case <-session.Done():
		return session.Ended()
	case <-ctx.Done():
		return ctx.Err()
	}
}
