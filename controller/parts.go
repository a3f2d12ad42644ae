// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"errors"
	"log/slog"
	"os"

	"github.com/attune-hpc/attune/controller/admit"
	"github.com/attune-hpc/attune/controller/change"
	"github.com/attune-hpc/attune/controller/link"
	"github.com/attune-hpc/attune/controller/member"
	"github.com/attune-hpc/attune/controller/meter"
	"github.com/attune-hpc/attune/controller/probe"
	"github.com/attune-hpc/attune/controller/sites"
	"github.com/attune-hpc/attune/internal/objfile"
)

// parts are what a controller is made of.
type parts struct {
	config Config
	log    *slog.Logger

	cache     *objfile.Cache
	functions *sites.Functions
	placer    *probe.Placer
	client    *link.Client
	members   *member.Set
	admission *admit.Admission
	outbox    *link.Outbox
	losses    link.Losses
	meter     *meter.Meter
	wanted    *change.Wanted
	changes   *change.Changes

	ctx    context.Context // of everything that runs; ended by Stop
	cancel context.CancelFunc
	work   work // goroutines that end with ctx
}

// run starts a part that ends with ctx.
func (p *parts) run(part string, f func(context.Context) error) {
	p.work.Go(func() {
		if err := f(p.ctx); err != nil && p.ctx.Err() == nil {
			p.log.Error("part of the controller ended", "part", part, "error", err)
		}
	})
}

// rights says whose processes may be looked into, and for whom.
func (p *parts) rights() admit.Rights {
	return admit.Rights{User: p.config.Session.User, Owner: p.config.Session.Owner, Denied: p.config.Denied}
}

// userID is whose processes they are.
func (p *parts) userID() uint32 {
	if user := p.config.Session.User; user != nil {
		return user.GetUid()
	}
	return uint32(os.Geteuid())
}

// dispose frees what New made.
func (p *parts) dispose() error {
	var errs []error
	if p.admission != nil {
		errs = append(errs, p.admission.Close())
	}
	if p.meter != nil {
		errs = append(errs, p.meter.Close())
	}
	if p.members != nil {
		errs = append(errs, p.members.Close())
	}
	errs = append(errs, p.cache.Close())
	if p.changes != nil {
		errs = append(errs, p.changes.Close())
	}
	return errors.Join(errs...)
}
