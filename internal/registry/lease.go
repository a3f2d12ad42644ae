// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"google.golang.org/protobuf/proto"

	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// Lease is an Analyzer's ownership of a registration. Its methods may be called
// by many goroutines.
type Lease struct {
	client       *Client
	announcement *Announcement
	registration string
	lost         chan struct{}

	mu sync.Mutex
	// order is put back into a registry that has lost it.
	order *attunev1.Registration
	epoch uint64
	// revision of the record, in the stream that was created then.
	revision uint64
	created  time.Time
	// term of the announcement in which the record was written.
	term uint64
	over bool
}

// Lost is closed when the lease is over: another Analyzer has taken the
// registration, it was deleted, or the lease was released. A registry that is
// away does not end a lease: sessions go on until somebody else has them.
func (l *Lease) Lost() <-chan struct{} { return l.lost }

// Registered says whether the registration is there, by what the registry has at a time
// after the call: one that was deleted has no other owner.
func (l *Lease) Registered(ctx context.Context) (bool, error) {
	if err := l.client.orders.refresh(ctx); err != nil {
		return false, err
	}
	_, there, _ := l.client.orders.get(keyRegistration + l.registration)
	return there, nil
}

// Epoch returns the number by which controllers tell this owner from those
// before. It grows when the lease had to be taken again.
func (l *Lease) Epoch() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.epoch
}

// Release gives the registration to whoever wants it next.
func (l *Lease) Release(ctx context.Context) error {
	if !l.end() {
		return nil
	}
	l.client.leases.remove(l)
	return l.client.do(ctx, func(ctx context.Context) error {
		kv, err := l.client.bucket(ctx, bucketOrders)
		if err != nil {
			return err
		}
		owner, revision, err := getOwner(ctx, kv, l.registration)
		if err != nil || !l.names(owner) {
			return err // somebody has it already, or this was done
		}
		owner.Analyzer = nil
		value, err := proto.Marshal(owner)
		if err != nil {
			return err
		}
		if _, err = kv.Update(ctx, keyOwner+l.registration, value, revision); conflict(err) {
			return nil
		}
		return err
	})
}

// names says whether a record was written for this very start of the Analyzer.
func (l *Lease) names(owner *attunev1.OwnerRecord) bool {
	return proto.Equal(owner.GetAnalyzer(), l.announcement.record)
}

// end ends the lease; false: it was over.
func (l *Lease) end() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.over {
		return false
	}
	l.over = true
	close(l.lost)
	return true
}

// leases are those of a client, in the care of one goroutine.
type leases struct {
	once sync.Once
	mu   sync.Mutex
	held map[*Lease]struct{}
}

// add takes a lease into care; one before it of the same registration is lost.
func (s *leases) add(c *Client, l *Lease) {
	s.drop(l.registration)
	s.mu.Lock()
	if s.held == nil {
		s.held = make(map[*Lease]struct{})
	}
	s.held[l] = struct{}{}
	s.mu.Unlock()
	s.once.Do(func() { c.start(c.keepLeases) })
}

func (s *leases) remove(l *Lease) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.held, l)
}

// all returns the leases that are held now.
func (s *leases) all() []*Lease {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Collect(maps.Keys(s.held))
}

// registrations returns what they are of.
func (s *leases) registrations() map[string]bool {
	held := make(map[string]bool)
	for _, l := range s.all() {
		held[l.registration] = true
	}
	return held
}

// drop ends the leases of a registration.
func (s *leases) drop(registration string) {
	for _, l := range s.all() {
		if l.registration == registration {
			l.end()
			s.remove(l)
		}
	}
}

// keepLeases looks after the leases whenever something may have happened.
func (c *Client) keepLeases(ctx context.Context) {
	changed := make(chan struct{}, 1)
	defer c.orders.listen(changed)()
	tick := time.NewTicker(c.options.TTL / (2 * renewals))
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-changed:
		case <-tick.C:
		}
		for _, l := range c.leases.all() {
			if !c.keepLease(ctx, l) {
				l.end()
				c.leases.remove(l)
			}
		}
	}
}

// keepLease returns false if the lease is over.
func (c *Client) keepLease(ctx context.Context, l *Lease) bool {
	e, there, state := c.orders.get(keyOwner + l.registration)
	term, _ := l.announcement.valid()
	l.mu.Lock()
	another := !l.created.IsZero() && !state.created.Equal(l.created)
	newer := state.last > l.revision && (!there || e.revision > l.revision)
	again := term != 0 && term != l.term
	l.mu.Unlock()
	if another {
		return term == 0 || l.restore(ctx, term)
	}
	if newer {
		if owner, ok := e.record.(*attunev1.OwnerRecord); !ok || !l.names(owner) {
			return false
		}
		again = term != 0 // it is our own: the answer to a write was lost
	}
	return !again || l.renew(ctx, term)
}

// rewrite makes this Analyzer the owner again, whose record had the revision, 0:
// which is not there. The answer to an earlier attempt may have been lost.
func (l *Lease) rewrite(ctx context.Context, kv jetstream.KeyValue, revision uint64) error {
	l.mu.Lock()
	epoch := l.epoch
	l.mu.Unlock()
	err := l.write(ctx, kv, epoch, revision)
	if !conflict(err) {
		return err
	}
	owner, revision, readErr := getOwner(ctx, kv, l.registration)
	if readErr != nil {
		return readErr
	}
	select {
	case <-l.lost: // it was released meanwhile
		return err
	default:
	}
	if !l.names(owner) {
		return err
	}
	return l.write(ctx, kv, owner.GetEpoch(), revision)
}

// renew takes a lease again that was not valid for a while, unless somebody
// else has it now. It returns false in that case. Nothing is known while the
// registry is away, and where it has lost its records that is not seen at once: it is
// tried again later.
func (l *Lease) renew(ctx context.Context, term uint64) bool {
	ctx, cancel := context.WithTimeout(ctx, attempt)
	defer cancel()
	l.mu.Lock()
	revision := l.revision
	l.mu.Unlock()
	kv, err := l.client.bucket(ctx, bucketOrders)
	if err == nil {
		err = l.rewrite(ctx, kv, revision)
	}
	if conflict(err) {
		switch another, looking := l.elsewhere(ctx, kv); {
		case looking != nil:
			err = looking
		case another:
			return true
		}
	}
	return l.settled(err, term)
}

// elsewhere says whether the bucket is another one than that in which the record of the
// lease was written, or a state of it from before.
func (l *Lease) elsewhere(ctx context.Context, kv jetstream.KeyValue) (bool, error) {
	now, err := streamOf(ctx, kv)
	l.mu.Lock()
	defer l.mu.Unlock()
	return !now.created.Equal(l.created) || now.last < l.revision, err
}

// restore puts registration and owner into a registry that has lost them. The
// owner comes first: nobody can claim what is not registered.
func (l *Lease) restore(ctx context.Context, term uint64) bool {
	ctx, cancel := context.WithTimeout(ctx, attempt)
	defer cancel()
	order := l.order
	if e, there, _ := l.client.orders.get(keyRegistration + l.registration); there {
		order = e.record.(*attunev1.Registration)
	}
	value, err := l.client.encode(order)
	if err != nil {
		return true
	}
	kv, err := l.client.bucket(ctx, bucketOrders)
	if err == nil {
		err = l.rewrite(ctx, kv, 0)
	}
	if err == nil {
		_, err = kv.Create(ctx, keyRegistration+l.registration, value)
		if conflict(err) {
			err = nil // somebody else has put it
		}
	}
	return l.settled(err, term)
}

// settled notes how the attempt to get a lease again ended.
func (l *Lease) settled(err error, term uint64) bool {
	if conflict(err) {
		return false
	}
	if err != nil {
		l.client.log.Warn("registry does not renew the lease, trying again", "registration", l.registration, "error", err)
		return true
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.term = term
	return true
}
