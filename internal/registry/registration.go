// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/nats-io/nats.go/jetstream"
	"google.golang.org/protobuf/proto"

	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// PutRegistration writes a registration, in the place of one that has its id.
// All watchers have it soon after. It waits for a registry that is away until
// ctx ends.
func (c *Client) PutRegistration(ctx context.Context, r *attunev1.Registration) error {
	if err := checkID("registration", r.GetId()); err != nil {
		return err
	}
	return c.put(ctx, bucketOrders, keyRegistration+r.GetId(), r)
}

// HandedOver is the executable of the registrations of jobs that are handed over
// on their nodes, whose programs are not known yet: no path has it, so that no node finds processes for one, and
// each serves those only that it was given itself.
const HandedOver = "(handed over)"

// HandedOverID is the id of the registration of a user's job that is handed over:
// the same on all nodes.
func HandedOverID(job *attunev1.Job, uid uint32) string {
	return strings.NewReplacer("[", "-", "]", "-").Replace(fmt.Sprintf("%s-%s-%d", job.GetKind(), job.GetId(), uid))
}

// CheckRegistrationID returns an error that says what an id has to be, if this
// is none that PutRegistration takes.
func CheckRegistrationID(id string) error { return checkID("registration", id) }

// MaxRegistration bounds a registration, bytes.
const MaxRegistration = 16 << 10

// CheckRegistrationSize returns an error if a registration is longer than that.
func CheckRegistrationSize(r *attunev1.Registration) error {
	if size := proto.Size(r); size > MaxRegistration {
		return fmt.Errorf("registration of %d bytes, at most %d: every node keeps it", size, MaxRegistration)
	}
	return nil
}

// AsksTheSame says whether two registrations differ at most in who made them, and when: of
// several Analyzers with one configuration each makes its own.
func AsksTheSame(a, b *attunev1.Registration) bool {
	b = proto.CloneOf(b)
	b.Owner, b.RegisteredUnixNano = a.GetOwner(), a.GetRegisteredUnixNano()
	return proto.Equal(a, b)
}

// DeleteRegistration takes a registration back, with the record of its owner.
// One that is not there is no error. A lease of it is lost once it is gone.
func (c *Client) DeleteRegistration(ctx context.Context, id string) error {
	if err := checkID("registration", id); err != nil {
		return err
	}
	if err := c.delete(ctx, bucketOrders, keyRegistration+id); err != nil {
		return err
	}
	c.leases.drop(id)
	return c.delete(ctx, bucketOrders, keyOwner+id)
}

// Registrations returns all registrations, by their ids.
func (c *Client) Registrations(ctx context.Context) ([]*attunev1.Registration, error) {
	return records[*attunev1.Registration](ctx, &c.buckets, bucketOrders, keyRegistration+">")
}

// Analyzers returns the Analyzers that live, by their ids.
func (c *Client) Analyzers(ctx context.Context) ([]*attunev1.AnalyzerRecord, error) {
	return records[*attunev1.AnalyzerRecord](ctx, &c.buckets, bucketAnalyzers, jetstream.AllKeys)
}

// PutSession writes the record of a session, in the place of one that has its
// id. It is deleted a week after it was last written.
func (c *Client) PutSession(ctx context.Context, s *attunev1.SessionRecord) error {
	if err := checkID("session", s.GetId()); err != nil {
		return err
	}
	return c.put(ctx, bucketSessions, s.GetId(), s)
}

// Sessions returns the records of all sessions, by their ids.
func (c *Client) Sessions(ctx context.Context) ([]*attunev1.SessionRecord, error) {
	return records[*attunev1.SessionRecord](ctx, &c.buckets, bucketSessions, jetstream.AllKeys)
}

// records returns all records that fit, by their keys. One that cannot be read
// is left out and logged.
func records[T proto.Message](ctx context.Context, b *buckets, bucket, filter string) ([]T, error) {
	var entries []jetstream.KeyValueEntry
	err := b.do(ctx, func(ctx context.Context) error {
		kv, err := b.bucket(ctx, bucket)
		if err != nil {
			return err
		}
		entries, err = read(ctx, kv, filter, jetstream.IgnoreDeletes())
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("list %s: %w", bucket, err)
	}
	found := make(map[string]T)
	for _, e := range entries {
		record, err := decode(bucket, e.Key(), e.Value())
		if err != nil {
			b.log.Warn("registry has a record that cannot be read", "bucket", bucket, "key", e.Key(), "error", err)
			continue
		}
		found[e.Key()] = record.(T)
	}
	list := make([]T, 0, len(found))
	for _, key := range slices.Sorted(maps.Keys(found)) {
		list = append(list, found[key])
	}
	return list, nil
}
