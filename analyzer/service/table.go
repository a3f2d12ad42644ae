// SPDX-License-Identifier: Apache-2.0

package service

import (
	"context"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/attune-hpc/attune/internal/registry"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// viewPatience is how long the registry may take to tell what is registered.
const viewPatience = 5 * time.Second

// table says what is registered, what of that this Analyzer has, and which
// sessions. Its methods are safe for use by several goroutines.
type table struct {
	self string // this Analyzer's id

	mu      sync.Mutex // guards what follows; before hosted.mu
	view    registry.View
	changed chan struct{} // closed when view or owned has changed
	owned   map[string]*owned
	hosted  map[key]*hosted
	ending  bool // nothing is begun any more
}

func newTable(self string) *table {
	return &table{self: self, changed: make(chan struct{}), owned: make(map[string]*owned), hosted: make(map[key]*hosted)}
}

// see takes over what is registered now. It returns what this Analyzer had and is
// withdrawn, what it has by its record only, from before it was started again, and the
// sessions whose registration asks for something else than what they began with.
func (t *table) see(v registry.View) (withdrawn []*owned, unclaimed []string, changed []*hosted) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.view = v
	t.wake()
	for id, o := range t.owned {
		if v.Registrations[id] == nil {
			withdrawn = append(withdrawn, o)
			delete(t.owned, id)
		}
	}
	for id, o := range v.Owners {
		if o.GetAnalyzer().GetId() == t.self && t.owned[id] == nil && v.Registrations[id] != nil {
			unclaimed = append(unclaimed, id)
		}
	}
	for k, h := range t.hosted {
		r := v.Registrations[k.registration]
		if r == nil || r == h.registration {
			continue
		}
		if !registry.AsksTheSame(h.registration, r) {
			h.closeDoor() // before anybody can come by what is registered now
			changed = append(changed, h)
		}
		h.registration = r
	}
	return withdrawn, unclaimed, changed
}

// wake has await look again. The caller holds mu.
func (t *table) wake() {
	close(t.changed)
	t.changed = make(chan struct{})
}

// await waits until done, which is called with mu held, returns true. It returns
// false if that takes longer than patience, or ctx ends.
func (t *table) await(ctx context.Context, patience time.Duration, done func() bool) bool {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		t.mu.Lock()
		is, changed := done(), t.changed
		t.mu.Unlock()
		if is {
			return true
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return false
		}
	}
}

// awaitRegistration returns a registration, and waits a moment for one that is so
// new that it is not known here yet. nil: there is none.
func (t *table) awaitRegistration(ctx context.Context, id string, patience time.Duration) (r *attunev1.Registration) {
	t.await(ctx, patience, func() bool {
		r = t.view.Registrations[id]
		return r != nil
	})
	return r
}

// awaitRegistrations returns what is registered, and waits until that is known.
func (t *table) awaitRegistrations(ctx context.Context) (all map[string]*attunev1.Registration, err error) {
	told := t.await(ctx, viewPatience, func() bool {
		all = t.view.Registrations
		return all != nil
	})
	if !told {
		return nil, status.Error(codes.Unavailable, "the registry has not told yet what is registered")
	}
	return all, nil
}

// awaitOwnership returns when this Analyzer has a registration that is known here, or
// the error for a controller if another one has it, or nobody, or it is withdrawn.
func (t *table) awaitOwnership(ctx context.Context, id string, patience time.Duration) (err error) {
	known := t.await(ctx, patience, func() bool {
		owner := t.view.Owners[id]
		switch {
		case t.owned[id] != nil:
			return true
		case owner != nil && owner.GetAnalyzer().GetId() != t.self:
			err = errMoved
			return true
		case t.view.Registrations[id] == nil:
			err = errUnregistered(id)
			return true
		}
		return false
	})
	if !known {
		return status.Error(codes.Unavailable, "nobody has the registration yet")
	}
	return err
}

// registrations returns what is registered, nil until that is known. Nobody changes
// the map.
func (t *table) registrations() map[string]*attunev1.Registration {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.view.Registrations
}

// enter has controllers served from now on, those too that have been waiting for
// it: the view that named this Analyzer may have come before. It returns false
// if the service is ending.
func (t *table) enter(o *owned) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ending {
		return false
	}
	t.owned[o.id] = o
	t.wake()
	return true
}

// drop takes out a registration. It returns false if it was taken out before.
func (t *table) drop(o *owned) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.owned[o.id] != o {
		return false
	}
	delete(t.owned, o.id)
	return true
}

// owner returns this Analyzer's ownership of a registration, nil if there is
// none.
func (t *table) owner(id string) *owned {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.owned[id]
}

// hostedOf returns the sessions of a registration, of all if id is empty.
func (t *table) hostedOf(id string) (list []*hosted) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for k, h := range t.hosted {
		if id == "" || k.registration == id {
			list = append(list, h)
		}
	}
	return list
}

// here returns the sessions of this Analyzer, by id.
func (t *table) here() map[string]*hosted {
	here := make(map[string]*hosted)
	for _, h := range t.hostedOf("") {
		here[h.snapshot().GetId()] = h
	}
	return here
}

// remove takes out a session with its last record, which the next session of the
// same execution has to know; nil: another Analyzer goes on with it.
func (t *table) remove(h *hosted, record *attunev1.SessionRecord) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if o := t.owned[h.key.registration]; o != nil && record != nil {
		o.end(h.key, record)
	}
	delete(t.hosted, h.key)
}

// end has nothing begin any more, takes out the registrations and returns them.
func (t *table) end() map[string]*owned {
	t.mu.Lock()
	defer t.mu.Unlock()
	all := t.owned
	t.ending, t.owned = true, make(map[string]*owned)
	return all
}
