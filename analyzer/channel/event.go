// SPDX-License-Identifier: Apache-2.0

package channel

import (
	"errors"
	"io"

	"google.golang.org/grpc"

	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// eventService serves the event channel.
type eventService struct {
	attunev1.UnimplementedEventServiceServer

	route       Route
	connections *connections
}

// Publish takes the events of one controller.
func (e *eventService) Publish(stream grpc.ClientStreamingServer[attunev1.PublishRequest, attunev1.PublishResponse]) error {
	m, err := stream.Recv()
	if err != nil {
		return err
	}
	hello := m.GetHello()
	session, err := e.route.find(stream.Context(), hello)
	if err != nil {
		return err
	}
	taken := e.connections.join(hello.GetConnection())
	defer e.connections.leave(hello.GetConnection())
	session.EventsConnected(hello)
	taken.add()
	resp := &attunev1.PublishResponse{Messages: 1}
	for {
		m, err := stream.Recv()
		switch {
		case errors.Is(err, io.EOF):
			return stream.SendAndClose(resp)
		case err != nil:
			return err
		}
		select {
		case <-session.Done():
			return session.Ended()
		default:
		}
		resp.Messages++
		session.Publish(hello.GetControllerId(), m)
		taken.add()
	}
}
