// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"context"
	"errors"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/attune-hpc/attune/internal/beat"
)

// MarksKept is how long marks of deletions stay.
const MarksKept = marksKept

// TidyOrders removes the marks of deleted registrations that are older.
func (c *Client) TidyOrders(ctx context.Context, older time.Duration) error {
	return c.tidy(ctx, bucketOrders, older)
}

// LoseOrders makes the registry lose all registrations and owners.
func (c *Client) LoseOrders(ctx context.Context) error {
	js, err := c.jetStream(ctx)
	if err != nil {
		return err
	}
	if err := js.DeleteKeyValue(ctx, bucketOrders); err != nil {
		return err
	}
	c.forget()
	_, err = c.bucket(ctx, bucketOrders)
	for isStoreInUse(err) && beat.Pause(ctx, time.Millisecond) {
		_, err = c.bucket(ctx, bucketOrders)
	}
	return err
}

// isStoreInUse reports whether a server could not make a stream: it removes the files of
// one that was deleted behind its answer, and cannot make another of its name meanwhile.
func isStoreInUse(err error) bool {
	refused, ok := errors.AsType[*jetstream.APIError](err)
	return ok && refused.ErrorCode == 10049
}

// Compare has the client compare its copy of the orders with the registry's.
func (c *Client) Compare(ctx context.Context) error { return c.orders.refresh(ctx) }

// Renew takes the lease again as after a time in which it was not valid, and reports
// whether it lives on.
func (l *Lease) Renew(ctx context.Context) bool {
	term, _ := l.announcement.valid()
	return l.renew(ctx, term)
}

// Valid says whether it is certain that nobody else has the registration. While
// the registry is away that ends after two thirds of Options.TTL; it comes back
// with the registry, unless the lease is lost.
func (l *Lease) Valid() bool {
	term, _ := l.announcement.valid()
	l.mu.Lock()
	defer l.mu.Unlock()
	return !l.over && term != 0 && term == l.term
}

// Orders counts what a reader of registrations and owners has to read.
func (c *Client) Orders(ctx context.Context) (int, error) {
	kv, err := c.bucket(ctx, bucketOrders)
	if err != nil {
		return 0, err
	}
	entries, err := read(ctx, kv, jetstream.AllKeys)
	return len(entries), err
}

// FollowAnew forgets all controllers, and follows them once more, by the connection that
// there is.
func (c *Client) FollowAnew() {
	c.controllers.mu.Lock()
	clear(c.controllers.byID)
	c.controllers.mu.Unlock()
	c.start(c.followControllers)
}
