// SPDX-License-Identifier: Apache-2.0

package service

import (
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/attune-hpc/attune/internal/pki"
	"github.com/attune-hpc/attune/internal/testing/patience"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// TestRevocation: an admin has the certificates of somebody not be believed any more,
// by name or by number; nobody else may, and whoever is meant is cut off.
func TestRevocation(t *testing.T) {
	p := newPlace(t)
	a := p.analyzer("a", nil)
	annID, bobID := p.pki.User(t, "ann", annUID), p.pki.User(t, "bob", bobUID)
	admin, ann, bob := p.as(p.admin, a), p.people(annID, a), p.people(bobID, a)
	is(t, ann)
	is(t, bob)
	revoke := func(r *attunev1.Revocation) (*attunev1.Revocation, error) {
		answer, err := attunev1.NewRevocationServiceClient(admin).Revoke(t.Context(), &attunev1.RevokeRequest{Revocation: r})
		return answer.GetRevocation(), err
	}
	for who, identity := range map[string]*pki.Identity{"a user": annID, "a node": p.node, "an Analyzer": p.own} {
		service := attunev1.NewRevocationServiceClient(p.as(identity, a))
		_, revoked := service.Revoke(t.Context(), &attunev1.RevokeRequest{Revocation: &attunev1.Revocation{Name: "bob"}})
		_, listed := service.ListRevocations(t.Context(), &attunev1.ListRevocationsRequest{})
		for _, err := range []error{revoked, listed} {
			if status.Code(err) != codes.PermissionDenied {
				t.Errorf("%s: %v", who, err)
			}
		}
	}
	for name, r := range map[string]*attunev1.Revocation{
		"nothing": nil, "both": {Name: "bob", Serial: "1"}, "no number": {Serial: "x"}, "colons": {Serial: "01:02"},
		"a number with a role": {Serial: "1", Role: attunev1.Role_ROLE_USER}, "a line": {Name: "a\nb"},
		"a long reason":             {Name: "bob", Reason: strings.Repeat("x", maxReason+1)},
		"a long reason of a number": {Serial: "1", Reason: strings.Repeat("x", maxReason+1)},
	} {
		if done, err := revoke(r); status.Code(err) != codes.InvalidArgument {
			t.Errorf("%s: %v, %v", name, done, err)
		}
	}
	done, err := revoke(&attunev1.Revocation{Name: "bob", Reason: "gone", By: "somebody else"})
	if err != nil || done.GetBy() != "admin (admin)" || done.GetBeforeUnix() == 0 || done.GetRevokedUnix() == 0 {
		t.Fatalf("%v, %v", done, err)
	}
	patience.Until(t, "bob to be cut off", func() bool {
		_, err := bob.ListSessions(t.Context(), &attunev1.ListSessionsRequest{})
		return status.Code(err) == codes.Unavailable
	})
	is(t, ann)
	if _, err := revoke(&attunev1.Revocation{Serial: pki.SerialOf(annID.Leaf())}); err != nil {
		t.Fatal(err)
	}
	patience.Until(t, "ann to be cut off", func() bool {
		_, err := ann.ListSessions(t.Context(), &attunev1.ListSessionsRequest{})
		return status.Code(err) == codes.Unavailable
	})
	list, err := attunev1.NewRevocationServiceClient(admin).ListRevocations(t.Context(), &attunev1.ListRevocationsRequest{})
	if err != nil || len(list.GetRevocations()) != 2 {
		t.Errorf("%v, %v", list, err)
	}
}
