// SPDX-License-Identifier: Apache-2.0

package service

import (
	"fmt"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/attune-hpc/attune/analyzer/tunlethost"
	"github.com/attune-hpc/attune/internal/pki"
	"github.com/attune-hpc/attune/internal/quota"
	"github.com/attune-hpc/attune/internal/registry"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// orders makes registrations of what people ask for. Its methods are safe for use by
// several goroutines.
type orders struct {
	table      *table
	tunletDirs []string
	most       int // registrations of one user
	// rate bounds how often one user registers: what is registered is known a moment
	// later only, and each costs every node.
	rate *quota.Rate[string]
	// handedOver bounds those of jobs that were handed over, which do not count among most.
	handedOver *handedOver
}

// registerEvery is how often one user may register beyond as many as they may have.
const registerEvery = 2 * time.Second

// order returns the registration that is asked for, checked and completed.
func (o *orders) order(who *attunev1.Principal, asked *attunev1.Registration) (*attunev1.Registration, error) {
	r := proto.CloneOf(asked)
	if r == nil {
		return nil, status.Error(codes.InvalidArgument, "nothing is to be registered")
	}
	if r.GetMode() == "" {
		r.Mode = "tune"
	}
	if err := ValidateRegistration(r); err != nil {
		return nil, status.Error(codes.InvalidArgument, err.Error())
	}
	if err := o.knowTunlets(r.GetTunlets()); err != nil {
		return nil, err
	}
	r.Owner, r.RegisteredUnixNano = ownerOf(who, r), time.Now().UnixNano()
	if err := mayMean(who, r); err != nil {
		return nil, err
	}
	if err := mayRegister(who, r); err != nil {
		return nil, err
	}
	if !pki.OfService(who.GetRole()) {
		r.Id = ""
	}
	if strings.HasPrefix(r.GetId(), SiteID) {
		return nil, status.Errorf(codes.InvalidArgument, "ids with %s belong to the site's configuration", SiteID)
	}
	if r.GetId() != "" {
		return o.again(r)
	}
	if old := o.same(r); old != nil {
		return nil, status.Errorf(codes.AlreadyExists, "you have that already, as %s in mode %s: take it back first with attune session stop %s",
			old.GetId(), old.GetMode(), old.GetId())
	}
	if err := o.roomFor(r.GetOwner()); err != nil {
		return nil, err
	}
	// One that is given twice would hand somebody's registration over to somebody else.
	for known := o.table.registrations(); r.Id == "" || known[r.GetId()] != nil; {
		r.Id = newRegistrationID(r)
	}
	return r, nil
}

// same returns what the owner has registered of the very same executions, of which
// either could get a process; nil if there is none.
func (o *orders) same(r *attunev1.Registration) *attunev1.Registration {
	for _, old := range o.table.registrations() {
		if old.GetOwner().GetRole() == r.GetOwner().GetRole() && old.GetOwner().GetUid() == r.GetOwner().GetUid() &&
			old.GetOwner().GetName() == r.GetOwner().GetName() &&
			old.GetExecutable() == r.GetExecutable() && old.GetSha256() == r.GetSha256() && old.GetArguments() == r.GetArguments() &&
			old.GetUser() == r.GetUser() && old.GetBatchOnly() == r.GetBatchOnly() && old.GetJob().Key() == r.GetJob().Key() {
			return old
		}
	}
	return nil
}

// knowTunlets returns an error that names tunlets which are not there.
func (o *orders) knowTunlets(names []string) error {
	if len(names) == 0 {
		return nil
	}
	var missing []string
	for _, c := range tunlethost.Find(o.tunletDirs, names) {
		if c.Err != nil {
			missing = append(missing, c.Name+": "+c.Err.Error())
		}
	}
	if len(missing) > 0 {
		return status.Errorf(codes.InvalidArgument, "tunlet %s", strings.Join(missing, "; "))
	}
	return nil
}

// again returns what is registered under an id that was given: the registration of
// a job that was handed over elsewhere before, as it is, or else the new one. An id
// is for one user.
func (o *orders) again(r *attunev1.Registration) (*attunev1.Registration, error) {
	old := o.table.registrations()[r.GetId()]
	if old == nil && r.GetExecutable() == registry.HandedOver {
		var err error
		if old, err = o.handedOver.enter(r); err != nil {
			return nil, err
		}
	}
	switch {
	case old == nil:
		return r, nil
	case old.GetOwner().GetUid() != r.GetOwner().GetUid():
		return nil, status.Errorf(codes.AlreadyExists, "registration %s is of %s", r.GetId(), old.GetOwner().GetName())
	case (old.GetExecutable() == registry.HandedOver) != (r.GetExecutable() == registry.HandedOver):
		return nil, status.Errorf(codes.AlreadyExists, "registration %s is another one of %s", r.GetId(), old.GetOwner().GetName())
	case r.GetExecutable() == registry.HandedOver:
		return old, nil
	}
	return r, nil
}

// roomFor says whether a user may have one more registration.
func (o *orders) roomFor(owner *attunev1.Principal) error {
	if owner.GetRole() != attunev1.Role_ROLE_USER {
		return nil
	}
	n := 0
	for _, r := range o.table.registrations() {
		own := r.GetOwner().GetRole() == attunev1.Role_ROLE_USER && r.GetOwner().GetUid() == owner.GetUid()
		if own && r.GetExecutable() != registry.HandedOver {
			n++
		}
	}
	switch {
	case n >= o.most:
		return status.Errorf(codes.ResourceExhausted, "%s has %d registrations already; take some back with attune session stop", owner.GetName(), n)
	case !o.rate.Take(fmt.Sprintf("%d %s", owner.GetUid(), owner.GetName())):
		return status.Errorf(codes.ResourceExhausted, "%s registers too often; wait %v", owner.GetName(), registerEvery)
	}
	return nil
}
