// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"context"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// MarksKept is how long marks of deletions stay.
const MarksKept = marksKept

// TidyOrders removes the marks of deleted registrations that are older.
func (c *Client) TidyOrders(ctx context.Context, older time.Duration) error {
	return c.tidy(ctx, bucketOrders, older)
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
