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

	route     Route
	receivers sync.WaitGroup
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
	q := &queue{requests: make(chan *attunev1.ManageResponse, requestQueue), overflow: make(chan struct{})}
	session.ControllerConnected(hello, q)
	ended := make(chan error, 1)
	m.receivers.Go(func() { ended <- receive(session, hello.GetControllerId(), stream) }) // ends with the stream
	err = q.serve(stream, session, ended)
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

// queue holds the requests to one controller.
type queue struct {
	requests chan *attunev1.ManageResponse
	overflow chan struct{} // closed when there was no room
	once     sync.Once
}

// Send queues a request, or ends the channel if there is no room.
func (q *queue) Send(r *attunev1.ManageResponse) bool {
	select {
	case <-q.overflow:
		return false
	default:
	}
	select {
	case q.requests <- r:
		return true
	default:
		q.once.Do(func() { close(q.overflow) })
		return false
	}
}

// serve sends what is queued until the channel or the session ends. nil: the
// controller has nothing more to do here.
func (q *queue) serve(stream stream, session Session, ended <-chan error) error {
	ctx, cancel := context.WithCancel(stream.Context())
	defer cancel()
	for {
		select {
		case r := <-q.requests:
			if err := stream.Send(r); err != nil {
				return err
			}
		case <-q.overflow:
			return status.Error(codes.ResourceExhausted, "the controller does not read its requests")
		case err := <-ended:
			return err
		case <-session.Done():
			return session.Ended()
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
