// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// goodbye bounds what is done at the end.
const goodbye = 2 * time.Second

// Client is the registry as an Analyzer has it: all records, to be read and
// written.
type Client struct {
	buckets

	orders      *mirror
	alive       *mirror
	signs       *signsOfLife
	controllers *controllers
	leases      leases
	tidying     sync.Once

	announced atomic.Pointer[Announcement] // of its Analyzer; nil: none
}

// Open returns at once with a client that connects in the background, now and
// whenever the connection is lost. The error is about the options only. Methods
// that need the registry wait for it until their context ends.
//
// Close frees what the client holds.
func Open(ctx context.Context, o Options) (*Client, error) {
	conn, err := open(ctx, o, inboxAnalyzers)
	if err != nil {
		return nil, err
	}
	c := &Client{
		buckets:     buckets{conn: conn, known: make(map[string]jetstream.KeyValue)},
		signs:       newSignsOfLife(),
		controllers: newControllers(controllersTTL * conn.options.TTL),
	}
	c.failed = c.forget
	c.orders = newMirror(conn, bucketOrders, c.read)
	c.alive = newMirror(conn, bucketAnalyzers, c.read)
	c.alive.observe = c.signs.observe
	c.start(c.followControllers)
	return c, nil
}
