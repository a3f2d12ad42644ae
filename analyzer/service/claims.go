// SPDX-License-Identifier: Apache-2.0

package service

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/attune-hpc/attune/internal/beat"
	"github.com/attune-hpc/attune/internal/registry"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

const (
	// claimSpread is the time over which Analyzers claim what nobody has, so that
	// one alone does not get everything; each session that one has adds
	// claimBias, so that the idle ones come first.
	claimSpread = 100 * time.Millisecond
	claimBias   = 20 * time.Millisecond
	maxBias     = time.Second
	// jobPatience is how long a registration of one execution waits for it: jobs
	// may wait in queues.
	jobPatience = 14 * 24 * time.Hour
	// releasePatience is how long the registry may take to let go of one or to say
	// whether it is there, which it is asked again after askAgain, and leavePatience to
	// let go of all at the end.
	releasePatience = 2 * time.Second
	askAgain        = time.Second
	leavePatience   = 10 * time.Second
)

// claims gets registrations and has them until they are lost. Its methods are safe
// for use by several goroutines.
type claims struct {
	table    *table
	registry *registry.Client
	recorder *recorder
	log      *slog.Logger
	patience time.Duration // how long sessions that are to be taken over wait for controllers
	ctx      context.Context
	cancel   context.CancelFunc
	running  sync.WaitGroup
	claiming sync.Map // the registrations, by id, that own claims or has
}

// claim tries to get a registration after some time, in the background, unless the
// service is ending.
func (c *claims) claim(id string, after time.Duration) {
	c.table.mu.Lock()
	defer c.table.mu.Unlock()
	if c.table.ending {
		return
	}
	c.running.Go(func() {
		if beat.Pause(c.ctx, after) {
			c.own(c.ctx, id)
		}
	})
}

// see takes over what is registered now.
func (c *claims) see(ctx context.Context, v registry.View) {
	withdrawn, unclaimed, changed := c.table.see(v)
	for _, id := range unclaimed {
		c.claim(id, 0)
	}
	for _, o := range withdrawn {
		c.endSessions(o.id)
		c.release(ctx, o)
	}
	for _, h := range changed {
		h.stop(ending{reason: "its registration has changed"})
	}
}

// endSessions ends the sessions of a registration that is not there any more.
func (c *claims) endSessions(id string) {
	c.log.Info("registration withdrawn", "registration", id)
	for _, h := range c.table.hostedOf(id) {
		h.stop(ending{reason: "its registration was withdrawn"})
	}
}

// claimUnowned tries to get registrations that nobody has.
func (c *claims) claimUnowned(ids []string) {
	for _, id := range ids {
		c.table.mu.Lock()
		bias := min(maxBias, time.Duration(len(c.table.hosted))*claimBias)
		c.table.mu.Unlock()
		c.claim(id, bias+rand.N(claimSpread))
	}
}

// own claims a registration and has it until it is lost, unless this Analyzer has it,
// or is claiming it: a second claim would end the lease of the first. Somebody else
// may be quicker.
func (c *claims) own(ctx context.Context, id string) {
	if _, begun := c.claiming.LoadOrStore(id, nil); begun {
		return
	}
	defer c.claiming.Delete(id)
	lease, err := c.registry.Claim(ctx, id)
	if err != nil {
		if !errors.Is(err, registry.ErrOwned) && !errors.Is(err, registry.ErrNoRegistration) && ctx.Err() == nil {
			c.log.Warn("registration not claimed; it is tried again", "registration", id, "error", err)
		}
		return
	}
	o := newOwned(id, lease)
	records, err := c.registry.Sessions(ctx)
	if err != nil {
		c.log.Warn("earlier sessions are not known; what they kept is undone", "registration", id, "error", err)
	}
	o.recall(records)
	known := len(o.past) + len(o.ended)
	if !c.table.enter(o) {
		c.release(context.WithoutCancel(ctx), o)
		return
	}
	c.log.Info("registration claimed", "registration", id, "epoch", lease.Epoch(), "sessions", known)
	c.hold(ctx, o)
}

// hold looks after a registration until its lease is lost. The sessions then
// belong to another Analyzer, or end with the registration: that its lease is lost may
// be known before the view without it has come.
func (c *claims) hold(ctx context.Context, o *owned) {
	tidy := time.NewTicker(c.patience)
	defer tidy.Stop()
	for lost := false; !lost; {
		select {
		case <-ctx.Done():
			return
		case <-tidy.C:
			c.tidy(ctx, o)
		case <-o.lease.Lost():
			lost = true
		}
	}
	if !c.table.drop(o) {
		return // it was given up
	}
	switch gone, err := c.withdrawn(ctx, o); {
	case err != nil:
		return // the Analyzer ends, and leaves all its sessions
	case gone:
		c.endSessions(o.id)
		return
	}
	c.log.Warn("registration lost to another Analyzer", "registration", o.id)
	for _, h := range c.table.hostedOf(o.id) {
		h.abandon(errMoved)
	}
}

// withdrawn asks whether a registration is gone, until the registry answers or ctx ends.
func (c *claims) withdrawn(ctx context.Context, o *owned) (gone bool, err error) {
	for told := false; ; told = true {
		asking, cancel := context.WithTimeout(ctx, releasePatience)
		there, err := o.lease.Registered(asking)
		cancel()
		if err == nil {
			return !there, nil
		}
		if !told {
			c.log.Warn("registry does not say whether a registration was withdrawn, asking again", "registration", o.id, "error", err)
		}
		if !beat.Pause(ctx, askAgain) {
			return false, ctx.Err()
		}
	}
}

// tidy ends what nobody came for: sessions that were to be taken over, and a
// registration of one execution only.
func (c *claims) tidy(ctx context.Context, o *owned) {
	c.table.mu.Lock()
	r := c.table.view.Registrations[o.id]
	here := make(map[string]bool)
	for k, h := range c.table.hosted {
		if k.registration == o.id {
			here[h.snapshot().GetId()] = true
		}
	}
	orphans := o.endPast(here)
	over := len(here) == 0 && (len(o.past)+len(o.ended) > 0 || !awaited(o, r))
	o.forget()
	c.table.mu.Unlock()
	for _, p := range orphans {
		c.log.Info("session ended while it had no Analyzer", "session", p.GetId())
		c.recorder.put(p)
	}
	if r.GetJob() != nil && over {
		c.log.Info("registration of one execution has done its work", "registration", o.id)
		if err := c.registry.DeleteRegistration(ctx, o.id); err != nil {
			c.log.Warn("registration not taken back; it is tried again", "registration", o.id, "error", err)
		}
	}
}

// awaited says whether somebody may come for a registration of one execution that has had
// no session yet. The caller holds table.mu.
func awaited(o *owned, r *attunev1.Registration) bool {
	if r.GetExecutable() == registry.HandedOver { // its processes were there from the first
		return time.Since(o.asked) < handedOverPatience
	}
	return time.Since(time.Unix(0, r.GetRegisteredUnixNano())) < jobPatience
}

// release gives a lease back.
func (c *claims) release(ctx context.Context, o *owned) {
	ctx, cancel := context.WithTimeout(ctx, releasePatience)
	defer cancel()
	if err := o.lease.Release(ctx); err != nil {
		c.log.Warn("lease not released; it ends by itself", "registration", o.id, "error", err)
	}
}
