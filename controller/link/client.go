// SPDX-License-Identifier: Apache-2.0

package link

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"sync"
	"sync/atomic"

	"google.golang.org/grpc/credentials"

	"github.com/attune-hpc/attune/internal/queue"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

const (
	// eventQueue is how many messages may wait for the event channel: at
	// 4096 records a message that is half a million records.
	eventQueue = 128
	// answerQueue is how many answers may wait for the management channel.
	answerQueue = 1024
)

// ErrNotConnected says that there is no Analyzer at present, so that a message
// is lost. What must not be lost is told again when there is one.
var ErrNotConnected = errors.New("not connected to an analyzer")

// ErrOver says that the Analyzer has no such session, and will have none.
var ErrOver = errors.New("the session is over")

// Finder says where the Analyzer is. It may move while a Client runs.
type Finder interface {
	// Find waits until an Analyzer is known, or ctx ends. moved is closed when
	// it is to be asked again. A connection that fails leads to the next call,
	// which may give another address of the same Analyzer.
	Find(ctx context.Context) (peer Peer, moved <-chan struct{}, err error)
}

// Peer is an Analyzer that can be reached.
type Peer struct {
	// Address as gRPC writes it: HOST:PORT, or unix:PATH.
	Address string
	// Credentials of the connections; nil only for Unix sockets, whose peers
	// the kernel vouches for.
	Credentials credentials.TransportCredentials
}

// Options say where the Analyzer is and who the controller is.
type Options struct {
	// Peer is the Analyzer. The Client ends with the connection to it.
	Peer Peer
	// Finder finds the Analyzer instead, and again whenever the connection is
	// lost or the Analyzer has moved. The Client is connected only between
	// Opened and Lost.
	Finder Finder
	// Hello introduces the controller; called for each connection.
	Hello func() *attunev1.ControllerHello
	// Living lists the handles of the processes that live, for each connection;
	// nil: none do at the first, which is the only one.
	Living func() []uint64
	// Opened is called with each connection that Finder led to, before any
	// message may leave by it but those that are handed to send, in order. It
	// calls open when others may. Needed with Finder.
	Opened func(send func(*attunev1.PublishRequest) error, open func())
	// Lost is called after a connection of Opened was lost. Needed with Finder.
	Lost func()
	// Undelivered is called with each message of Publish that does not reach the
	// Analyzer, and with those of TryPublish that were queued for a connection
	// which broke. What the kernel has taken is delivered, as far as the client
	// knows. It may be called from several goroutines and must not publish; nil:
	// nobody counts them.
	Undelivered func(*attunev1.PublishRequest)
	// Log may be nil.
	Log *slog.Logger

	pause pauses // between connections, for tests
}

// Handler executes one request from the Analyzer. It is called on one
// goroutine, in order, and answers through Client.Answer.
type Handler func(ctx context.Context, request *attunev1.ManageResponse)

// Client is the controller's end of both channels.
type Client struct {
	options Options
	log     *slog.Logger

	current   atomic.Pointer[connection] // nil: not connected
	closed    chan struct{}              // no more messages will come
	closeOnce sync.Once
}

// New prepares the connection without waiting for the Analyzer.
func New(options Options) (*Client, error) {
	if options.Log == nil {
		options.Log = slog.New(slog.DiscardHandler)
	}
	if options.Undelivered == nil {
		options.Undelivered = func(*attunev1.PublishRequest) {}
	}
	c := &Client{options: options, log: options.Log.With("component", "channel"), closed: make(chan struct{})}
	if options.Finder != nil {
		return c, nil
	}
	l, err := dial(options.Peer)
	if err != nil {
		return nil, err
	}
	c.current.Store(l) // what comes before the Analyzer is there waits for it
	close(l.opened)
	return c, nil
}

// Publish queues a message that is not to be lost (processes, samples,
// aggregates). It waits while the queue is full, until ctx is done, but never
// for a connection: without one the error is [ErrNotConnected].
func (c *Client) Publish(ctx context.Context, message *attunev1.PublishRequest) error {
	err := ErrNotConnected
	if l := c.current.Load(); l != nil {
		err = put(ctx, c, l.events, message)
	}
	if err != nil {
		c.options.Undelivered(message)
	}
	return err
}

// TryPublish queues a message that may be lost, and reports whether it did.
func (c *Client) TryPublish(message *attunev1.PublishRequest) bool {
	l := c.current.Load()
	return l != nil && !c.finished() && l.events.Offer(message)
}

// Answer queues an answer or a status for the management channel. It waits
// while the queue is full, until ctx is done, but never for a connection.
func (c *Client) Answer(ctx context.Context, message *attunev1.ManageRequest) error {
	l := c.current.Load()
	if l == nil {
		return ErrNotConnected
	}
	return put(ctx, c, l.answers, message)
}

// Finish says that no more messages will come: Run delivers what is queued and
// returns. It may be called more than once.
func (c *Client) Finish() {
	c.closeOnce.Do(func() {
		close(c.closed)
		if l := c.current.Load(); l != nil {
			l.finish()
		}
	})
}

// Run carries messages until Finish was called and everything is delivered, or
// ctx is done, or the Analyzer is gone; with a Finder the last is no end, but
// its word that there is no such session is, with [ErrOver]. The
// management channel, whose end means to the Analyzer that the controller has
// gone, ends after the event channel.
func (c *Client) Run(ctx context.Context, handle Handler) error {
	defer c.Finish()
	if c.options.Finder != nil {
		return c.runFound(ctx, handle)
	}
	return c.serve(ctx, c.current.Load(), handle)
}

func put[M any](ctx context.Context, c *Client, to *queue.Queue[M], message M) error {
	if c.finished() {
		return io.ErrClosedPipe
	}
	err := to.Put(ctx, message)
	switch {
	case !errors.Is(err, queue.ErrClosed):
		return err
	case c.finished():
		return io.ErrClosedPipe
	}
	return ErrNotConnected
}
