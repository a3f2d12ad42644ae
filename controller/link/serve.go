// SPDX-License-Identifier: Apache-2.0

package link

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc"

	"github.com/attune-hpc/attune/internal/queue"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// serve carries messages until Finish was called and everything is delivered,
// or ctx is done, or the connection breaks, and closes it.
func (c *Client) serve(ctx context.Context, l *connection, handle Handler) error {
	c.greeted.Store(l) // before: what happens meanwhile is rather told twice than not
	hello := c.options.Hello()
	hello.Connection = l.number
	group, ctx := errgroup.WithContext(ctx)
	delivered := make(chan struct{})
	group.Go(func() error {
		if err := c.runEvents(ctx, l, hello); err != nil {
			return err // ends the other one as well
		}
		close(delivered)
		return nil
	})
	group.Go(func() error { return c.runManagement(ctx, l, hello, handle, delivered) })
	if c.options.Finder != nil {
		group.Go(func() error { return c.open(ctx, l) })
	}
	group.Go(func() error {
		select {
		case <-c.closed:
			l.finish()
		case <-ctx.Done():
		}
		return nil
	})
	err := group.Wait()
	l.finish()
	c.countLost(l)
	close(l.broken)
	return errors.Join(err, l.eventConn.Close(), l.manageConn.Close())
}

// countLost tells of what a connection that has ended did not carry, and of what it
// carried and nobody acknowledged. One that was not open yet has nothing but what Opened
// tells again.
func (c *Client) countLost(l *connection) {
	select {
	case <-l.opened:
	default:
		return
	}
	for _, loss := range l.underway.losses() {
		c.options.Undelivered(loss)
	}
	for _, message := range l.events.Drain() {
		c.options.Undelivered(LossOf(message))
	}
}

func (c *Client) runEvents(ctx context.Context, l *connection, hello *attunev1.ControllerHello) error {
	stream, err := attunev1.NewEventServiceClient(l.eventConn).Publish(ctx, c.patience())
	if err != nil {
		return fmt.Errorf("open event channel: %w", err)
	}
	first := &attunev1.StreamHello{
		ControllerId: hello.GetControllerId(), Host: hello.GetHost(),
		Registration: hello.GetRegistration(), Job: hello.GetJob(), User: hello.GetUser(), Protocol: hello.GetProtocol(),
		Connection: hello.GetConnection(),
	}
	if c.options.Living != nil {
		first.Processes = c.options.Living()
	}
	if err := stream.Send(&attunev1.PublishRequest{Event: &attunev1.PublishRequest_Hello{Hello: first}}); err != nil {
		return fmt.Errorf("event channel: %w", errors.Join(err, reason(stream)))
	}
	l.underway.send(Loss{})
	close(l.ready)
	if err := c.pumpEvents(ctx, l, stream); err != nil {
		return fmt.Errorf("event channel: %w", err)
	}
	return nil
}

// open has what the Analyzer has to know told before anything else.
func (c *Client) open(ctx context.Context, l *connection) error {
	select {
	case <-l.ready:
	case <-ctx.Done():
		return ctx.Err()
	}
	c.options.Opened(
		func(m *attunev1.PublishRequest) error { return put(ctx, c, l.events, m) },
		func() { c.current.Store(l); close(l.opened) },
	)
	return nil
}

// patience says whether to wait for an Analyzer that is not there. Where it can
// be looked for elsewhere it is not waited for.
func (c *Client) patience() grpc.CallOption { return grpc.WaitForReady(c.options.Finder == nil) }

// reason asks for the other side's reason why a stream is broken.
func reason(stream attunev1.EventService_PublishClient) error {
	return stream.RecvMsg(new(attunev1.PublishResponse))
}

// pumpEvents sends events and, at the same time, waits for the Analyzer's
// answer, which comes early only when something is wrong.
func (c *Client) pumpEvents(ctx context.Context, l *connection, stream attunev1.EventService_PublishClient) error {
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error {
		err := pump(ctx, l.events, func(message *attunev1.PublishRequest) error {
			if err := stream.Send(message); err != nil {
				l.events.Return([]*attunev1.PublishRequest{message})
				return err
			}
			l.underway.send(LossOf(message))
			l.telling()
			return nil
		})
		if errors.Is(err, io.EOF) {
			return nil // broken by the other side, whose reason is received below
		}
		return errors.Join(err, stream.CloseSend())
	})
	group.Go(func() error {
		var summary attunev1.PublishResponse
		if err := stream.RecvMsg(&summary); err != nil {
			return err
		}
		l.underway.acknowledge(summary.GetMessages())
		c.log.Debug("event channel closed", "messages", summary.GetMessages())
		return c.early()
	})
	return group.Wait()
}

// errLeft says that the Analyzer closed a channel, which is for the controller
// to do.
var errLeft = errors.New("closed by the analyzer")

// early is errLeft if more messages could have come.
func (c *Client) early() error {
	if c.finished() {
		return nil
	}
	return errLeft
}

func (c *Client) runManagement(
	ctx context.Context, l *connection, hello *attunev1.ControllerHello, handle Handler, delivered <-chan struct{},
) error {
	stream, err := attunev1.NewManagementServiceClient(l.manageConn).Manage(ctx, c.patience())
	if err != nil {
		return fmt.Errorf("open management channel: %w", err)
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error {
		err := stream.Send(&attunev1.ManageRequest{Message: &attunev1.ManageRequest_Hello{Hello: hello}})
		if err == nil {
			err = pump(ctx, l.answers, stream.Send)
		}
		select {
		case <-delivered: // the end of this channel is that of the controller
		case <-ctx.Done():
		}
		if errors.Is(err, io.EOF) {
			return nil // as above
		}
		return errors.Join(err, stream.CloseSend())
	})
	group.Go(func() error { return c.receive(ctx, l, stream, handle) })
	if err := group.Wait(); err != nil {
		return fmt.Errorf("management channel: %w", err)
	}
	return nil
}

func (c *Client) receive(ctx context.Context, l *connection, stream attunev1.ManagementService_ManageClient, handle Handler) error {
	for {
		request, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return c.early()
		}
		if err != nil {
			return err
		}
		if acknowledged(l, request) {
			continue
		}
		if !l.spoken.Swap(true) {
			c.log.Info("connected to the analyzer", "analyzer", strings.TrimPrefix(l.manageConn.Target(), carried))
		}
		l.heard.Ring()
		// Who has been told of a process may ask for something before the rest is
		// told; the answer would find no connection.
		select {
		case <-l.opened:
		case <-c.closed:
		case <-ctx.Done():
			return ctx.Err()
		}
		handle(ctx, request)
	}
}

// acknowledged takes a message's word of events, and says whether that is all it says:
// then the session behind it has said nothing. One that does not understand a request has
// it among what is unknown.
func acknowledged(l *connection, request *attunev1.ManageResponse) (all bool) {
	if request.EventsTaken == nil {
		l.underway.trust()
		return false
	}
	l.underway.acknowledge(request.GetEventsTaken())
	return request.GetRequest() == nil && request.GetRequestId() == "" && len(request.ProtoReflect().GetUnknown()) == 0
}

// pump sends what is queued until the queue is closed and empty.
func pump[M any](ctx context.Context, from *queue.Queue[M], send func(M) error) error {
	for {
		if ctx.Err() != nil {
			return ctx.Err() // although a full queue has something to send
		}
		message, err := from.Take(ctx)
		if errors.Is(err, queue.ErrClosed) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := send(message); err != nil {
			return err
		}
	}
}
