// SPDX-License-Identifier: Apache-2.0

package service

import (
	"maps"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/attune-hpc/attune/internal/quota"
	"github.com/attune-hpc/attune/internal/registry"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// handedOverPatience is how long the registration of a job that was handed over stays
// while no controller asks for its session: one that is refused asks again within seconds.
const handedOverPatience = 5 * time.Minute

// comingPatience is how long the registry may take to tell of one that was taken.
const comingPatience = time.Minute

// handedOver bounds the registrations of jobs that were handed over to nodes. Users hand
// over as many jobs as they like to name, nodes tell of them, and every node keeps what is
// registered. So a user has as many here as sessions. Its methods are safe for use by
// several goroutines.
type handedOver struct {
	table *table
	most  int // of one user, at this Analyzer
	// rate bounds how often one user's begin, beyond most at once.
	rate *quota.Rate[uint32]

	mu sync.Mutex // guards what follows; before table.mu
	// coming are those that the registry has not told of yet, by id: all nodes of a job
	// tell of it at one moment, and it counts once.
	coming map[string]*attunev1.Registration
}

func newHandedOver(t *table, maxSessions int) *handedOver {
	most := max(1, maxSessions/2) // as many sessions as one user may have
	return &handedOver{
		table: t, most: most, rate: quota.NewRate[uint32](most, beginEvery), coming: make(map[string]*attunev1.Registration),
	}
}

// see takes over what the registry tells of: if it is taken back and handed over again,
// that is another one.
func (h *handedOver) see(v registry.View) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.forget(v.Registrations)
}

// forget forgets those that the registry tells of, or has not told of for long. The caller
// holds mu.
func (h *handedOver) forget(known map[string]*attunev1.Registration) {
	maps.DeleteFunc(h.coming, func(id string, c *attunev1.Registration) bool {
		return known[id] != nil || time.Since(time.Unix(0, c.GetRegisteredUnixNano())) > comingPatience
	})
}

// enter takes a registration that the registry has not told of. It returns the one of that
// id that was taken a moment before, if it is the same or of another user, or else r.
func (h *handedOver) enter(r *attunev1.Registration) (*attunev1.Registration, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.forget(h.table.registrations())
	earlier := h.coming[r.GetId()]
	if earlier != nil && (registry.AsksTheSame(earlier, r) || earlier.GetOwner().GetUid() != r.GetOwner().GetUid()) {
		return earlier, nil
	}
	delete(h.coming, r.GetId()) // whose place this one has
	if err := h.roomFor(r.GetOwner()); err != nil {
		if earlier != nil {
			h.coming[r.GetId()] = earlier
		}
		return nil, err
	}
	h.coming[r.GetId()] = r
	return r, nil
}

// roomFor says whether a user may have one more. The caller holds mu.
func (h *handedOver) roomFor(owner *attunev1.Principal) error {
	if owner.GetRole() != attunev1.Role_ROLE_USER {
		return nil
	}
	n := h.table.handedOverBy(owner.GetUid())
	for _, c := range h.coming {
		if c.GetOwner().GetUid() == owner.GetUid() {
			n++
		}
	}
	switch {
	case n >= h.most:
		return status.Errorf(codes.ResourceExhausted, "%s has %d jobs here that were handed over, which is the most", owner.GetName(), n)
	case !h.rate.Take(owner.GetUid()):
		return status.Errorf(codes.ResourceExhausted, "jobs of %s are handed over too often; one may be every %v", owner.GetName(), beginEvery)
	}
	return nil
}

// handedOverBy counts the registrations of a user's jobs that were handed over, but for
// those that other Analyzers have.
func (t *table) handedOverBy(uid uint32) (count int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for id, r := range t.view.Registrations {
		owner := t.view.Owners[id].GetAnalyzer()
		if r.GetExecutable() == registry.HandedOver && r.GetOwner().GetUid() == uid && (owner == nil || owner.GetId() == t.self) {
			count++
		}
	}
	return count
}
