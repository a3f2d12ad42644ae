// SPDX-License-Identifier: Apache-2.0

package channel

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"sync/atomic"

	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"

	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

const (
	// eventQueue is how many messages may wait for the event channel: at
	// 4096 records a message that is half a million records.
	eventQueue = 128
	// answerQueue is how many answers may wait for the management channel.
	answerQueue = 1024
)

// Options say where the Analyzer is and who the controller is.
type Options struct {
	// Address of the Analyzer as gRPC writes it, e.g. "unix:/run/.../a.sock".
	Address string
	// Credentials of the connections; nil only for Unix sockets, whose peers
	// the kernel vouches for.
	Credentials credentials.TransportCredentials
	// Hello introduces the controller.
	Hello *attunev1.ControllerHello
	// Log may be nil.
	Log *slog.Logger
}

// Handler executes one request from the Analyzer. It is called on one
// goroutine, in order, and answers through Client.Answer.
type Handler func(ctx context.Context, request *attunev1.ManageResponse)

// Client is the controller's end of both channels.
type Client struct {
	options Options
	log     *slog.Logger

	eventConn, manageConn *grpc.ClientConn
	events                chan *attunev1.PublishRequest
	answers               chan *attunev1.ManageRequest
	closed                chan struct{} // no more messages will come
	closeOnce             sync.Once

	lost atomic.Uint64 // records that found the event queue full
}

// New prepares both connections without waiting for the Analyzer.
func New(options Options) (*Client, error) {
	if options.Log == nil {
		options.Log = slog.New(slog.DiscardHandler)
	}
	if options.Credentials == nil {
		options.Credentials = insecure.NewCredentials()
	}
	c := &Client{
		options: options,
		log:     options.Log.With("component", "channel"),
		events:  make(chan *attunev1.PublishRequest, eventQueue),
		answers: make(chan *attunev1.ManageRequest, answerQueue),
		closed:  make(chan struct{}),
	}
	var err error
	if c.eventConn, err = c.dial(); err != nil {
		return nil, err
	}
	if c.manageConn, err = c.dial(); err != nil {
		return nil, errors.Join(err, c.eventConn.Close())
	}
	return c, nil
}

func (c *Client) dial() (*grpc.ClientConn, error) {
	conn, err := grpc.NewClient(c.options.Address,
		grpc.WithTransportCredentials(c.options.Credentials))
	if err != nil {
		return nil, fmt.Errorf("connect to analyzer %s: %w", c.options.Address, err)
	}
	return conn, nil
}

// Publish queues a message that must not be lost (processes, samples,
// aggregates). It waits while the queue is full, until ctx is done.
func (c *Client) Publish(ctx context.Context, message *attunev1.PublishRequest) error {
	return put(ctx, c.closed, c.events, message)
}

// TryPublish queues a message that may be lost, and reports whether it did.
// records is what is counted as lost otherwise.
func (c *Client) TryPublish(message *attunev1.PublishRequest, records uint64) bool {
	select {
	case c.events <- message:
		return true
	default:
		c.lost.Add(records)
		return false
	}
}

// Lost returns how many records TryPublish could not queue.
func (c *Client) Lost() uint64 { return c.lost.Load() }

// Answer queues an answer or a status for the management channel. It waits
// while the queue is full, until ctx is done.
func (c *Client) Answer(ctx context.Context, message *attunev1.ManageRequest) error {
	return put(ctx, c.closed, c.answers, message)
}

// Finish says that no more messages will come: Run delivers what is queued and
// returns. It may be called more than once.
func (c *Client) Finish() { c.closeOnce.Do(func() { close(c.closed) }) }

// Run carries messages until Finish was called and everything is delivered, or
// ctx is done, or the Analyzer is gone. The management channel, whose end means
// to the Analyzer that the controller has gone, ends after the event channel.
func (c *Client) Run(ctx context.Context, handle Handler) error {
	group, ctx := errgroup.WithContext(ctx)
	delivered := make(chan struct{})
	group.Go(func() error {
		defer close(delivered)
		return c.runEvents(ctx)
	})
	group.Go(func() error { return c.runManagement(ctx, handle, delivered) })
	err := group.Wait()
	c.Finish()
	return errors.Join(err, c.eventConn.Close(), c.manageConn.Close())
}

func (c *Client) runEvents(ctx context.Context) error {
	stream, err := attunev1.NewEventServiceClient(c.eventConn).Publish(ctx, grpc.WaitForReady(true))
	if err != nil {
		return fmt.Errorf("open event channel: %w", err)
	}
	hello := &attunev1.StreamHello{ControllerId: c.options.Hello.GetControllerId(), Host: c.options.Hello.GetHost()}
	if err := stream.Send(&attunev1.PublishRequest{Event: &attunev1.PublishRequest_Hello{Hello: hello}}); err != nil {
		return fmt.Errorf("event channel: %w", err)
	}
	if err := c.pumpEvents(ctx, stream); err != nil {
		return fmt.Errorf("event channel: %w", err)
	}
	return nil
}

// pumpEvents sends events and, at the same time, waits for the Analyzer's
// answer, which comes early only when something is wrong.
func (c *Client) pumpEvents(ctx context.Context, stream attunev1.EventService_PublishClient) error {
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error {
		err := pump(ctx, c.closed, c.events, stream.Send)
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
		c.log.Debug("event channel closed", "messages", summary.GetMessages(), "records", summary.GetRecords())
		return nil
	})
	return group.Wait()
}

func (c *Client) runManagement(ctx context.Context, handle Handler, delivered <-chan struct{}) error {
	stream, err := attunev1.NewManagementServiceClient(c.manageConn).Manage(ctx, grpc.WaitForReady(true))
	if err != nil {
		return fmt.Errorf("open management channel: %w", err)
	}
	hello := &attunev1.ManageRequest{Message: &attunev1.ManageRequest_Hello{Hello: c.options.Hello}}
	if err := stream.Send(hello); err != nil {
		return fmt.Errorf("management channel: %w", err)
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error {
		if err := pump(ctx, delivered, c.answers, stream.Send); err != nil {
			return err
		}
		return stream.CloseSend()
	})
	group.Go(func() error { return receive(ctx, stream, handle) })
	if err := group.Wait(); err != nil {
		return fmt.Errorf("management channel: %w", err)
	}
	return nil
}

func receive(ctx context.Context, stream attunev1.ManagementService_ManageClient, handle Handler) error {
	for {
		request, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		handle(ctx, request)
	}
}

func put[M any](ctx context.Context, closed <-chan struct{}, queue chan<- M, message M) error {
	select {
	case <-closed:
		return io.ErrClosedPipe
	default:
	}
	select {
	case queue <- message:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-closed:
		return io.ErrClosedPipe
	}
}

// pump sends what is queued until end is closed and the queue is empty.
func pump[M any](ctx context.Context, end <-chan struct{}, queue <-chan M, send func(M) error) error {
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		default:
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case message := <-queue:
			if err := send(message); err != nil {
				return err
			}
		case <-end:
			return flush(queue, send)
		}
	}
}

func flush[M any](queue <-chan M, send func(M) error) error {
	for {
		select {
		case message := <-queue:
			if err := send(message); err != nil {
				return err
			}
		default:
			return nil
		}
	}
}
