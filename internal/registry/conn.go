// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/attune-hpc/attune/internal/beat"
)

// attempt bounds one request; a lost one is made again.
const attempt = 5 * time.Second

// ErrClosed is returned by a Client or a Node that was closed.
var ErrClosed = errors.New("registry client is closed")

// conn is a connection to the registry that is made again whenever it is lost.
type conn struct {
	options Options
	log     *slog.Logger
	nats    *nats.Conn

	// ctx ends with Close; tasks are the goroutines that it waits for.
	ctx    context.Context
	cancel context.CancelFunc
	tasks  sync.WaitGroup

	link  link
	shown shown
	// failed is called before a request is made again; nil: nothing is.
	failed func()
}

// open begins to connect. The error is about the options only. Answers come to
// subjects that begin with inbox.
func open(ctx context.Context, o Options, inbox string) (*conn, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	o.TTL = cmp.Or(o.TTL, DefaultTTL)
	o.Log = cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	c := &conn{options: o, log: o.Log.With("component", "registry")}
	c.ctx, c.cancel = context.WithCancel(context.WithoutCancel(ctx))
	c.link.init()
	var err error
	if c.nats, err = c.dial(inbox); err != nil {
		c.cancel()
		return nil, fmt.Errorf("registry %s: %w", o.URL, err)
	}
	if o.secured() {
		c.start(c.followCertificate)
	}
	return c, nil
}

// Close says good-bye for what is announced and ends all that was begun; calls
// that wait end with ErrClosed. Leases that were not released stay with their
// Analyzer until its record has ended.
func (c *conn) Close() {
	c.cancel()
	c.tasks.Wait()
	c.nats.Close()
	c.link.down()
}

// Connected says whether the registry can be reached at this moment.
func (c *conn) Connected() bool { return c.nats.IsConnected() }

// start runs a function that ends with the client, which waits for it.
func (c *conn) start(run func(context.Context)) {
	c.tasks.Go(func() { run(c.ctx) })
}

// do makes a request when there is a connection, and makes it again as long as
// the registry is in the way, until ctx ends. What it does must be the same if
// done twice.
func (c *conn) do(ctx context.Context, request func(context.Context) error) error {
	return c.doWithin(ctx, attempt, request)
}

// doWithin is do with so much time for each attempt.
func (c *conn) doWithin(ctx context.Context, each time.Duration, request func(context.Context) error) error {
	var last error
	for pause := retryAfter; ; pause = min(2*pause, retryAtMost) {
		link, err := c.link.wait(ctx, c.ctx)
		if err != nil {
			return errors.Join(err, last)
		}
		once, cancel := context.WithTimeout(ctx, each)
		stop := context.AfterFunc(link, cancel)
		err = request(once)
		stop()
		cancel()
		if err == nil || !passing(err) {
			return err
		}
		last = err
		if c.failed != nil {
			c.failed()
		}
		if !beat.Pause(ctx, pause) {
			return errors.Join(context.Cause(ctx), last)
		}
	}
}

// retryAfter is between the first two attempts while the connection stands. Each
// further one waits twice as long, up to retryAtMost: a node whose site has no Analyzer
// for days must not cost anything.
const (
	retryAfter  = 250 * time.Millisecond
	retryAtMost = 2 * time.Second
)

// passing says whether an error is of the registry being away or not ready, not
// of what was asked.
func passing(err error) bool {
	if api, ok := errors.AsType[*jetstream.APIError](err); ok {
		return api.Code >= 500 || api.ErrorCode == jetstream.JSErrCodeStreamNotFound
	}
	// What watches buckets has errors of its own.
	if api, ok := errors.AsType[*nats.APIError](err); ok {
		return api.Code >= 500 || api.ErrorCode == nats.JSErrCodeStreamNotFound
	}
	return slices.ContainsFunc([]error{
		context.DeadlineExceeded, context.Canceled, nats.ErrTimeout, nats.ErrNoResponders,
		nats.ErrReconnectBufExceeded, ErrNoAnalyzer, nats.ErrDisconnected, nats.ErrConnectionReconnecting, nats.ErrStaleConnection,
		jetstream.ErrNoStreamResponse, jetstream.ErrStreamNotFound, jetstream.ErrBucketNotFound, errInterrupted,
	}, func(known error) bool { return errors.Is(err, known) })
}

// errInterrupted is of a list that broke off.
var errInterrupted = errors.New("the registry broke off in the middle")
