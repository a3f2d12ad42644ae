// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"google.golang.org/protobuf/proto"
)

// Domain is the name of a JetStream that serves other sites, too: from those it
// is reached by that name only.
const Domain = "attune"

// Names of the buckets. A stream of the same name with KV_ before it is what
// JetStream makes of each.
const (
	bucketOrders    = "attune_orders"
	bucketAnalyzers = "attune_analyzers"
	bucketSessions  = "attune_sessions"
)

const (
	// Changes is where a bucket's changes are published: Changes, BUCKET.KEY.
	Changes = "attune.changes."
	// replicas in a cluster: one server may be lost.
	replicas = 3
	// sessionsKept is how long a session's record outlives the last time that it was put.
	sessionsKept = 7 * 24 * time.Hour
)

// buckets are those of a registry that were found.
type buckets struct {
	*conn

	mu    sync.Mutex // guards known
	known map[string]jetstream.KeyValue
}

// bucketConfig is how a bucket is made that is not there yet.
func (b *buckets) bucketConfig(name string) jetstream.KeyValueConfig {
	config := jetstream.KeyValueConfig{Bucket: name, History: 1, Storage: jetstream.FileStorage}
	switch name {
	case bucketOrders:
		config.Description = "registrations of applications, which Analyzer has them, and revoked certificates"
	case bucketSessions:
		config.Description = "sessions"
		config.TTL = sessionsKept
	case bucketAnalyzers:
		config.Description = "Analyzers that live"
		config.Storage = jetstream.MemoryStorage
		config.TTL = b.options.TTL
	}
	config.RePublish = &jetstream.RePublish{
		Source: "$KV." + name + ".>", Destination: Changes + name + ".>",
	}
	return config
}

// bucket returns a bucket, which it makes if need be.
func (b *buckets) bucket(ctx context.Context, name string) (jetstream.KeyValue, error) {
	b.mu.Lock()
	kv := b.known[name]
	b.mu.Unlock()
	if kv != nil {
		return kv, nil
	}
	js, err := b.jetStream(ctx)
	if err != nil {
		return nil, err
	}
	kv, err = js.KeyValue(ctx, name)
	if errors.Is(err, jetstream.ErrBucketNotFound) {
		kv, err = b.createBucket(ctx, js, name)
	}
	if err != nil {
		return nil, fmt.Errorf("registry bucket %s: %w", name, err)
	}
	b.mu.Lock()
	b.known[name] = kv
	b.mu.Unlock()
	return kv, nil
}

// jetStream returns the one that has the name, also if it is at another site,
// else that of the server itself: a site's own need not have a name.
func (b *buckets) jetStream(ctx context.Context) (jetstream.JetStream, error) {
	js, err := jetstream.NewWithDomain(b.nats, Domain)
	if err != nil {
		return nil, err
	}
	_, err = js.AccountInfo(ctx)
	if errors.Is(err, nats.ErrNoResponders) || errors.Is(err, jetstream.ErrJetStreamNotEnabled) {
		return jetstream.New(b.nats)
	}
	return js, err
}

// createBucket makes it replicated where servers for that are.
func (b *buckets) createBucket(ctx context.Context, js jetstream.JetStream, name string) (jetstream.KeyValue, error) {
	config := b.bucketConfig(name)
	if b.nats.ConnectedClusterName() != "" {
		config.Replicas = replicas
		if kv, err := js.CreateKeyValue(ctx, config); err == nil {
			return kv, nil
		}
		config.Replicas = 1
	}
	kv, err := js.CreateKeyValue(ctx, config)
	if err == nil {
		return kv, nil
	}
	// Somebody else's request may have come first, or at once: servers then say
	// that it is there with another TTL, or that its subjects overlap with its own.
	if theirs, looking := js.KeyValue(ctx, name); looking == nil {
		return theirs, nil
	}
	return nil, err
}

// forget makes the next request look for the buckets again: they may be gone
// with the server that had them.
func (b *buckets) forget() {
	b.mu.Lock()
	defer b.mu.Unlock()
	clear(b.known)
}

// read returns the last value of each key that fits, in the order of writing.
func read(ctx context.Context, kv jetstream.KeyValue, filter string, options ...jetstream.WatchOpt) ([]jetstream.KeyValueEntry, error) {
	watch, err := kv.Watch(ctx, filter, options...)
	if err != nil {
		return nil, err
	}
	defer func() { _ = watch.Stop() }()
	var entries []jetstream.KeyValueEntry
	for {
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case entry, open := <-watch.Updates():
			if !open {
				return nil, errInterrupted
			}
			if entry == nil {
				return entries, nil
			}
			entries = append(entries, entry)
		}
	}
}

func (b *buckets) put(ctx context.Context, bucket, key string, record proto.Message) error {
	return b.do(ctx, func(ctx context.Context) error {
		value, err := b.encode(record)
		if err != nil {
			return err
		}
		kv, err := b.bucket(ctx, bucket)
		if err != nil {
			return err
		}
		_, err = kv.Put(ctx, key, value)
		return err
	})
}

func (b *buckets) delete(ctx context.Context, bucket, key string) error {
	return b.do(ctx, func(ctx context.Context) error {
		kv, err := b.bucket(ctx, bucket)
		if err != nil {
			return err
		}
		return kv.Delete(ctx, key)
	})
}

// Buckets are the names of all of them.
func Buckets() []string {
	return []string{bucketOrders, bucketAnalyzers, bucketSessions}
}

// read brings a copy of a bucket up to date.
func (b *buckets) read(ctx context.Context, m *mirror) error {
	short, cancel := context.WithTimeout(ctx, attempt)
	defer cancel()
	kv, err := b.bucket(short, m.bucket)
	if err != nil {
		return err
	}
	now, err := streamOf(short, kv)
	if err != nil {
		return err
	}
	return m.readChanges(ctx, kv, now)
}

// streamOf returns which stream a bucket is, and how far it is.
func streamOf(ctx context.Context, kv jetstream.KeyValue) (stream, error) {
	status, err := kv.Status(ctx)
	if err != nil {
		return stream{}, err
	}
	info := status.(*jetstream.KeyValueBucketStatus).StreamInfo()
	return stream{info.Created, info.State.LastSeq, info.Config.MaxAge}, nil
}

// readChanges reads what the stream has and the copy has not.
func (m *mirror) readChanges(ctx context.Context, kv jetstream.KeyValue, now stream) error {
	began := time.Now()
	others := m.compare(now)
	var options []jetstream.WatchOpt
	switch {
	case others == missing || m.stream.created.IsZero():
	case began.Sub(m.whole) > wholeAfter:
		others = gone
	case now.last == m.stream.last:
		return nil
	default:
		options = append(options, jetstream.ResumeFromRevision(m.stream.last+1))
	}
	entries, err := read(ctx, kv, jetstream.AllKeys, options...)
	if err != nil {
		return err
	}
	list := make([]change, 0, len(entries))
	for _, e := range entries {
		now.last = max(now.last, e.Revision())
		list = append(list, m.change(e.Key(), e.Revision(), e.Value(), e.Operation() != jetstream.KeyValuePut))
	}
	if options == nil {
		m.whole = began
	}
	m.apply(now, list, others)
	return nil
}
