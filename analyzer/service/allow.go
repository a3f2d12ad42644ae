// SPDX-License-Identifier: Apache-2.0

package service

import (
	"strconv"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/attune-hpc/attune/internal/authn"
	"github.com/attune-hpc/attune/internal/pki"
	"github.com/attune-hpc/attune/internal/registry"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// ofSite says whether a registration is the site's, not a user's.
func ofSite(r *attunev1.Registration) bool { return authn.Reaches(r.GetOwner(), pki.NoUID) }

// mayServe says whether somebody's controller may serve processes of a user for
// a registration. Nodes may, for everybody: their own policy is asked there. A
// user's own controller may for the user's own processes, if the registration is
// theirs or the site's.
func mayServe(who *attunev1.Principal, r *attunev1.Registration, user *attunev1.Principal) error {
	switch {
	case user != nil && !authn.Reaches(who, user.GetUid()):
		return status.Errorf(codes.PermissionDenied, "%s may not serve processes of %s", who.GetName(), user.GetName())
	case ofSite(r) || authn.Reaches(who, r.GetOwner().GetUid()):
		return nil
	}
	return status.Errorf(codes.PermissionDenied, "registration %s is not of %s", r.GetId(), who.GetName())
}

// mayJoin says whether somebody's controller may bring processes into a session
// of a user.
func mayJoin(who, user *attunev1.Principal) error {
	if user == nil || authn.Reaches(who, user.GetUid()) {
		return nil
	}
	return status.Errorf(codes.PermissionDenied, "the session is of %s", user.GetName())
}

// concerns says whether somebody may see and stop a registration.
func concerns(who *attunev1.Principal, r *attunev1.Registration) bool {
	return r != nil && authn.Reaches(who, r.GetOwner().GetUid())
}

// concernsSession says whether somebody may see and stop a session: its
// processes are theirs, or what it belongs to. r may be nil.
func concernsSession(who *attunev1.Principal, s *attunev1.SessionRecord, r *attunev1.Registration) bool {
	return s.GetUser() != nil && authn.Reaches(who, s.GetUser().GetUid()) || concerns(who, r) ||
		everybody(who)
}

// everybody says whether somebody may see all that there is.
func everybody(who *attunev1.Principal) bool { return authn.Reaches(who, pki.NoUID) }

// ownerOf returns who a new registration belongs to. Root registers for its
// users, everybody else for themselves.
func ownerOf(who *attunev1.Principal, r *attunev1.Registration) *attunev1.Principal {
	if pki.OfService(who.GetRole()) && r.GetOwner() != nil {
		return r.GetOwner()
	}
	return who
}

// mayRegister says whether a service's certificate may register something. It
// speaks for nobody: it can tell of a user's job that was handed over to a node,
// which no other node takes for a reason to touch a process.
func mayRegister(who *attunev1.Principal, r *attunev1.Registration) error {
	if !pki.OfService(who.GetRole()) || who.GetUid() != pki.NoUID {
		return nil
	}
	owner, job := r.GetOwner(), r.GetJob()
	user := owner.GetRole() == attunev1.Role_ROLE_USER || owner.GetRole() == attunev1.Role_ROLE_NODE && owner.GetUid() == 0
	if who.GetRole() == attunev1.Role_ROLE_NODE && user && r.GetExecutable() == registry.HandedOver && job.GetId() != "" && r.GetId() == registry.HandedOverID(job, owner.GetUid()) {
		return nil
	}
	return status.Errorf(codes.PermissionDenied, "%s, of role %s, may register jobs that were handed over to it, and nothing else", who.GetName(), pki.RoleName(who.GetRole()))
}

// mayMean says whether somebody may register for the users that are meant. A
// user's registration never reaches others, whoever it names.
func mayMean(who *attunev1.Principal, r *attunev1.Registration) error {
	owner := r.GetOwner()
	if owner.GetRole() != attunev1.Role_ROLE_USER || r.GetUser() == "" ||
		r.GetUser() == owner.GetName() || r.GetUser() == strconv.FormatUint(uint64(owner.GetUid()), 10) {
		return nil
	}
	return status.Errorf(codes.PermissionDenied, "%s may register for their own processes only, not for those of %s", who.GetName(), r.GetUser())
}
