// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"google.golang.org/protobuf/proto"

	"github.com/attune-hpc/attune/internal/beat"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

var (
	// ErrOwned is returned for a registration that another Analyzer has, one
	// that lives.
	ErrOwned = errors.New("another Analyzer has the registration")
	// ErrNoRegistration is returned for one that is not there.
	ErrNoRegistration = errors.New("there is no such registration")
)

// Claim makes the Analyzer that this client has announced the owner of a registration.
// Claim waits until the registry knows the Analyzer.
//
// Of all Analyzers that try, one at most has a valid lease at any time. The
// error is ErrOwned while a living Analyzer has it, one of another id. The same
// id gets it again, with a greater epoch, and the lease before is lost: an
// Analyzer that starts again under its old id need not wait for its own death.
// Two that run at a time must not have one id.
func (c *Client) Claim(ctx context.Context, registration string) (*Lease, error) {
	if err := checkID("registration", registration); err != nil {
		return nil, err
	}
	a := c.announced.Load()
	if a == nil {
		return nil, fmt.Errorf("claim registration %s: no Analyzer is announced", registration)
	}
	l := &Lease{client: c, announcement: a, registration: registration, lost: make(chan struct{})}
	// The copy shows what becomes of the lease.
	err := c.orders.refresh(ctx)
	if err != nil {
		return nil, err
	}
	if l.term, err = a.wait(ctx); err != nil {
		return nil, err
	}
	if err := c.do(ctx, l.take); err != nil {
		return nil, fmt.Errorf("claim registration %s: %w", registration, err)
	}
	c.leases.add(c, l)
	return l, nil
}

// wait returns the announcement's term when it is valid.
func (a *Announcement) wait(ctx context.Context) (term uint64, err error) {
	for {
		term, renewed := a.valid()
		if term != 0 {
			return term, nil
		}
		select {
		case <-ctx.Done():
			return 0, context.Cause(ctx)
		case <-a.done:
			return 0, fmt.Errorf("analyzer %q is not announced any more", a.id)
		case <-renewed:
		}
	}
}

// take makes this Analyzer the owner, if it may.
func (l *Lease) take(ctx context.Context) error {
	kv, err := l.client.bucket(ctx, bucketOrders)
	if err != nil {
		return err
	}
	if l.order, err = getOrder(ctx, kv, l.registration); err != nil {
		return err
	}
	for {
		owner, revision, err := getOwner(ctx, kv, l.registration)
		if err != nil {
			return err
		}
		if err := l.client.mayTake(ctx, owner, l.announcement.id); err != nil {
			return err
		}
		err = l.write(ctx, kv, owner.GetEpoch(), revision)
		if !conflict(err) {
			return err
		}
		if !beat.Pause(ctx, time.Millisecond) {
			return context.Cause(ctx)
		}
	}
}

// write makes this Analyzer the owner if the record still has the revision, 0:
// if there is none. See conflict for the error otherwise.
func (l *Lease) write(ctx context.Context, kv jetstream.KeyValue, epoch, revision uint64) error {
	owner := &attunev1.OwnerRecord{Registration: l.registration, Analyzer: l.announcement.record, Epoch: nextEpoch(epoch)}
	value, err := l.client.encode(owner)
	if err != nil {
		return err
	}
	_, _, state := l.client.orders.get("")
	written, err := compareAndSwap(ctx, kv, keyOwner+l.registration, value, revision)
	if err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.epoch, l.revision, l.created = owner.GetEpoch(), written, state.created
	return nil
}

// compareAndSwap writes a key that has the revision, 0: that is not there.
func compareAndSwap(ctx context.Context, kv jetstream.KeyValue, key string, value []byte, revision uint64) (uint64, error) {
	if revision == 0 {
		return kv.Create(ctx, key, value)
	}
	return kv.Update(ctx, key, value, revision)
}

// conflict says whether a key had another revision.
func conflict(err error) bool {
	if errors.Is(err, jetstream.ErrKeyExists) {
		return true
	}
	// Of a bucket with replicas; the library has no name for it.
	const wrongLastSequence = 10164
	api, is := errors.AsType[*jetstream.APIError](err)
	return is && api.ErrorCode == wrongLastSequence
}

// nextEpoch counts upward also where the registry has lost the last one: the
// first one of a registry is the time, in milliseconds.
func nextEpoch(last uint64) uint64 {
	if last == 0 {
		return uint64(time.Now().UnixMilli())
	}
	return last + 1
}

// mayTake returns ErrOwned unless nobody else who lives has the registration.
func (c *Client) mayTake(ctx context.Context, owner *attunev1.OwnerRecord, by string) error {
	id := owner.GetAnalyzer().GetId()
	if id == "" || id == by {
		return nil
	}
	// Whatever sign of life it has given so far is to count.
	if err := c.alive.refresh(ctx); err != nil {
		return err
	}
	if !c.dead(id) {
		return fmt.Errorf("%w: %s on %s", ErrOwned, id, owner.GetAnalyzer().GetHost())
	}
	return nil
}

// dead says whether an Analyzer's leases are over for sure.
func (c *Client) dead(id string) bool {
	life := c.alive.life()
	silent, left := c.signs.silent(id)
	return left || life > 0 && silent >= life
}

// getOrder returns a registration.
func getOrder(ctx context.Context, kv jetstream.KeyValue, id string) (*attunev1.Registration, error) {
	e, err := kv.Get(ctx, keyRegistration+id)
	if errors.Is(err, jetstream.ErrKeyNotFound) {
		return nil, ErrNoRegistration
	}
	if err != nil {
		return nil, err
	}
	order := new(attunev1.Registration)
	return order, proto.Unmarshal(e.Value(), order)
}

// getOwner returns who has a registration, nobody perhaps, and the revision of
// that; 0: there is no record.
func getOwner(ctx context.Context, kv jetstream.KeyValue, registration string) (*attunev1.OwnerRecord, uint64, error) {
	owner := new(attunev1.OwnerRecord)
	e, err := kv.Get(ctx, keyOwner+registration)
	if errors.Is(err, jetstream.ErrKeyNotFound) {
		return owner, 0, nil
	}
	if err != nil {
		return nil, 0, err
	}
	return owner, e.Revision(), proto.Unmarshal(e.Value(), owner)
}
