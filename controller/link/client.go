// SPDX-License-Identifier: Apache-2.0

package link

import (
	"cmp"
	"context"
	"errors"
	"io"
	"log/slog"
	"sync"
	"sync/atomic"

	"github.com/attune-hpc/attune/internal/queue"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// Client is the controller's end of both channels.
type Client struct {
	options Options
	log     *slog.Logger

	current   atomic.Pointer[connection] // nil: not connected
	greeted   atomic.Pointer[connection] // the last one whose hello is made; nil: none so far
	closed    chan struct{}              // no more messages will come
	closeOnce sync.Once
}

// New prepares the connection without waiting for the Analyzer.
func New(options Options) (*Client, error) {
	options.Log = cmp.Or(options.Log, slog.New(slog.DiscardHandler))
	if options.Undelivered == nil {
		options.Undelivered = func(Loss) {}
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
		c.options.Undelivered(LossOf(message))
	}
	return err
}

// TryPublish queues a message that may be lost, and reports whether it did.
func (c *Client) TryPublish(message *attunev1.PublishRequest) bool {
	l := c.current.Load()
	return l != nil && !c.finished() && l.events.Offer(message)
}

// Answer queues an answer or a status for the management channel. It waits
// while the queue is full, until ctx is done, but never for a connection. What nobody
// has asked for goes to a connection that is not open yet, too, from its hello on,
// which does not have it.
func (c *Client) Answer(ctx context.Context, message *attunev1.ManageRequest) error {
	l := c.current.Load()
	if l == nil && isNews(message) {
		l = c.greeted.Load()
	}
	if l == nil {
		return ErrNotConnected
	}
	return put(ctx, c, l.answers, message)
}

// isNews says whether a message tells what has happened to changes of itself. All else
// answers requests, which an Analyzer that was found since may not have made, or comes
// again anyway.
func isNews(message *attunev1.ManageRequest) bool {
	result := message.GetResult()
	return message.GetTakenOver() != nil || result != nil && result.GetRequestId() == ""
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

func (c *Client) finished() bool {
	select {
	case <-c.closed:
		return true
	default:
		return false
	}
}
