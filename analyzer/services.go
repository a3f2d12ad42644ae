// SPDX-License-Identifier: Apache-2.0

package analyzer

import (
	"context"
	"errors"
	"io"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/attune-hpc/attune/analyzer/session"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// requestQueue bounds the requests that wait for a controller. One that lets
// more pile up does not read any more.
const requestQueue = 4096

// eventService serves the event channel.
type eventService struct {
	attunev1.UnimplementedEventServiceServer
	session *session.Session
}

// Publish takes the events of one controller.
func (e *eventService) Publish(stream grpc.ClientStreamingServer[attunev1.PublishRequest, attunev1.PublishResponse]) error {
	m, err := stream.Recv()
	if err != nil {
		return err
	}
	id := m.GetHello().GetControllerId()
	if id == "" {
		return status.Error(codes.InvalidArgument, "the first message must be a hello with a controller id")
	}
	resp := &attunev1.PublishResponse{Messages: 1}
	for {
		m, err := stream.Recv()
		switch {
		case errors.Is(err, io.EOF):
			return stream.SendAndClose(resp)
		case err != nil:
			return err
		}
		resp.Messages++
		resp.Records += e.session.Publish(id, m)
	}
}

// managementService serves the management channel.
type managementService struct {
	attunev1.UnimplementedManagementServiceServer
	session *session.Session
	wg      *sync.WaitGroup // its receivers
}

// Manage carries requests to one controller, and its answers.
func (m *managementService) Manage(stream grpc.BidiStreamingServer[attunev1.ManageRequest, attunev1.ManageResponse]) error {
	first, err := stream.Recv()
	if err != nil {
		return err
	}
	hello := first.GetHello()
	if hello.GetControllerId() == "" {
		return status.Error(codes.InvalidArgument, "the first message must be a hello with a controller id")
	}
	ctx, cancel := context.WithCancel(stream.Context())
	defer cancel()
	c := &channel{queue: make(chan *attunev1.ManageResponse, requestQueue), overflow: make(chan struct{})}
	m.session.ControllerConnected(hello, c)
	defer m.session.ControllerGone(hello.GetControllerId(), c)
	ended := make(chan error, 1)
	m.wg.Go(func() { ended <- m.receive(hello.GetControllerId(), stream) }) // ends with the stream
	for {
		select {
		case r := <-c.queue:
			if err := stream.Send(r); err != nil {
				return err
			}
		case <-c.overflow:
			return status.Error(codes.ResourceExhausted, "the controller does not read its requests")
		case err := <-ended:
			return err
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// receive takes a controller's answers until the stream ends.
func (m *managementService) receive(id string, stream grpc.BidiStreamingServer[attunev1.ManageRequest, attunev1.ManageResponse]) error {
	for {
		msg, err := stream.Recv()
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
		m.session.Manage(id, msg)
	}
}

// channel queues the requests to one controller.
type channel struct {
	queue    chan *attunev1.ManageResponse
	overflow chan struct{} // closed when the queue was full
	once     sync.Once
}

// Send queues a request, or ends the channel if there is no room.
func (c *channel) Send(r *attunev1.ManageResponse) bool {
	select {
	case <-c.overflow:
		return false
	default:
	}
	select {
	case c.queue <- r:
		return true
	default:
		c.once.Do(func() { close(c.overflow) })
		return false
	}
}
