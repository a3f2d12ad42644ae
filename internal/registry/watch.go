// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// View is what is registered at one time. The maps belong to who got them, the
// records to everybody: they must not be changed.
type View struct {
	// Registrations by id.
	Registrations map[string]*attunev1.Registration
	// Owners by registration id. Those without have no Analyzer yet, or none any
	// more. An owner that died is named until another one takes its place.
	Owners map[string]*attunev1.OwnerRecord
}

// Watch calls f with everything that is registered, and again with everything
// after each change, until ctx ends, whose cause it returns. Calls follow each
// other; changes that come during one are all in the next. While the registry
// is away there is none. f must return soon after ctx has ended.
func (c *Client) Watch(ctx context.Context, f func(View)) error {
	return c.follow(ctx, c.orders, func() error { return errors.Join(c.heed(c.orders), c.putBack(ctx)) }, f)
}

// revokeAgain lies between two attempts to enforce and remember what is revoked.
const revokeAgain = 2 * time.Second

// follow calls f with what a mirror says, at first and after each change, and before it
// revoke, which enforces and remembers what is revoked. If that fails it is called again after a pause,
// whether or not there is a change, until it succeeds.
func (c *conn) follow(ctx context.Context, m *mirror, revoke func() error, f func(View)) error {
	changed := make(chan struct{}, 1)
	defer m.listen(changed)()
	const limit = time.Minute // f may look at all processes of a node
	loop := c.options.Turns.Begin("registry", limit, true)
	defer loop.End()
	tick := time.NewTicker(limit / 3)
	defer tick.Stop()
	var again <-chan time.Time // nil: revoke has succeeded
	for {
		loop.Turn()
		select {
		case <-tick.C:
		case <-again:
			again = c.tryRevoke(ctx, revoke, true)
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-c.ctx.Done():
			return ErrClosed
		case <-changed:
			again = c.tryRevoke(ctx, revoke, again != nil)
			f(m.view())
		}
	}
}

// tryRevoke calls revoke, and returns what tells when to call it again; nil: it has
// succeeded. The first failure in a row is logged.
func (c *conn) tryRevoke(ctx context.Context, revoke func() error, failing bool) (again <-chan time.Time) {
	err := revoke()
	if err == nil {
		return nil
	}
	if !failing && ctx.Err() == nil {
		c.log.Warn("what is revoked is not enforced everywhere, or not remembered; trying again", "error", err)
	}
	return time.After(revokeAgain)
}

// view is what a copy of the orders says.
func (m *mirror) view() View {
	v := View{
		Registrations: make(map[string]*attunev1.Registration),
		Owners:        make(map[string]*attunev1.OwnerRecord),
	}
	m.each(func(key string, e entry) {
		switch r := e.record.(type) {
		case *attunev1.Registration:
			v.Registrations[strings.TrimPrefix(key, keyRegistration)] = r
		case *attunev1.OwnerRecord:
			if r.GetAnalyzer() != nil {
				v.Owners[strings.TrimPrefix(key, keyOwner)] = r
			}
		}
	})
	return v
}

// WatchUnowned calls f with the ids of registrations that no living Analyzer
// has, sorted, those too that this client's own had before it was started
// again, whenever there are some: at a change, and about every third of
// Options.TTL. That is for Analyzers, who may Claim them. It returns as Watch.
func (c *Client) WatchUnowned(ctx context.Context, f func(ids []string)) error {
	tick := time.NewTicker(c.options.TTL / renewals)
	defer tick.Stop()
	changed := make(chan struct{}, 1)
	defer c.orders.listen(changed)()
	defer c.alive.listen(changed)()
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-c.ctx.Done():
			return ErrClosed
		case <-changed:
		case <-tick.C:
		}
		if ids := c.unowned(); len(ids) > 0 {
			f(ids)
		}
	}
}

// unowned returns the ids of registrations without living owner. What the
// Analyzer of this client owns without a lease it had in an earlier life.
func (c *Client) unowned() []string {
	v := c.orders.view()
	held, own := c.leases.registrations(), c.announced.Load()
	for id, owner := range v.Owners {
		earlier := own != nil && owner.GetAnalyzer().GetId() == own.id && !held[id]
		if !earlier && !c.dead(owner.GetAnalyzer().GetId()) {
			delete(v.Registrations, id)
		}
	}
	return slices.Sorted(maps.Keys(v.Registrations))
}
