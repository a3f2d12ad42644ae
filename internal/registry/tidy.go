// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/attune-hpc/attune/internal/beat"
)

const (
	// tidyEvery is how often an Analyzer looks for marks of deletions.
	tidyEvery = 24 * time.Hour
	// marksKept is how long they stay: whoever was away for longer than
	// wholeAfter reads everything.
	marksKept = 2 * wholeAfter
)

// keepTidy removes marks of deletions that everybody has seen. Each deletion
// leaves one, and who reads a bucket reads them too.
func (b *buckets) keepTidy(ctx context.Context) {
	// Not at every start, and not all Analyzers at one moment.
	for wait := rand.N(tidyEvery / 8); beat.Pause(ctx, wait); wait = tidyEvery {
		for _, bucket := range []string{bucketOrders, bucketSessions} {
			if err := b.tidy(ctx, bucket, marksKept); err != nil && ctx.Err() == nil {
				b.log.Warn("registry keeps marks of deletions until tomorrow", "bucket", bucket, "error", err)
			}
		}
	}
}

// tidy removes the marks of a bucket that are older, by the clock of the
// registry as this host's has it.
func (b *buckets) tidy(ctx context.Context, bucket string, older time.Duration) error {
	limit := time.Now().Add(-older)
	return b.doWithin(ctx, readWithin, func(ctx context.Context) error {
		kv, err := b.bucket(ctx, bucket)
		if err != nil {
			return err
		}
		entries, err := read(ctx, kv, jetstream.AllKeys, jetstream.MetaOnly())
		if err != nil {
			return err
		}
		js, err := b.jetStream(ctx)
		if err != nil {
			return err
		}
		stream, err := js.Stream(ctx, "KV_"+bucket)
		if err != nil {
			return err
		}
		for _, e := range entries {
			if e.Operation() == jetstream.KeyValuePut || e.Created().After(limit) {
				continue
			}
			// The mark and nothing that has been written since.
			err = errors.Join(err, stream.Purge(ctx,
				jetstream.WithPurgeSubject("$KV."+bucket+"."+e.Key()), jetstream.WithPurgeSequence(e.Revision()+1)))
		}
		return err
	})
}
