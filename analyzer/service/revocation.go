// SPDX-License-Identifier: Apache-2.0

package service

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/attune-hpc/attune/internal/authn"
	"github.com/attune-hpc/attune/internal/pki"
	"github.com/attune-hpc/attune/internal/registry"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// maxReason bounds why something was revoked, bytes.
const maxReason = 200

// revocations serves the RevocationService.
type revocations struct {
	attunev1.UnimplementedRevocationServiceServer

	registry *registry.Client
	log      *slog.Logger
}

// mayRevoke lets those in who reach everybody.
func mayRevoke(ctx context.Context) (*attunev1.Principal, error) {
	who, err := authn.PersonFrom(ctx)
	if err == nil && !everybody(who) {
		err = status.Error(codes.PermissionDenied, "certificates are revoked by admins, and by root of the Analyzer's machine")
	}
	return who, err
}

// Revoke implements the service.
func (s revocations) Revoke(ctx context.Context, q *attunev1.RevokeRequest) (*attunev1.RevokeResponse, error) {
	who, err := mayRevoke(ctx)
	if err != nil {
		return nil, err
	}
	r := proto.CloneOf(q.GetRevocation())
	if err := validRevocation(r); err != nil {
		return nil, status.Error(codes.InvalidArgument, err.Error())
	}
	now := time.Now()
	r.By, r.RevokedUnix = fmt.Sprintf("%s (%s)", who.GetName(), pki.RoleName(who.GetRole())), now.Unix()
	if r.GetSerial() == "" && r.GetBeforeUnix() == 0 {
		r.BeforeUnix = now.Unix() + 1 // those of this second, too
	}
	if err := s.registry.Revoke(ctx, r); err != nil {
		return nil, status.Errorf(codes.Unavailable, "the registry does not take it: %v", err)
	}
	s.log.Warn("revoked", "serial", r.GetSerial(), "name", r.GetName(), "role", pki.RoleName(r.GetRole()), "by", r.GetBy(), "reason", r.GetReason())
	return &attunev1.RevokeResponse{Revocation: r}, nil
}

// validRevocation checks what somebody wants revoked.
func validRevocation(r *attunev1.Revocation) error {
	if len(r.GetReason()) > maxReason {
		return fmt.Errorf("a reason has at most %d bytes", maxReason)
	}
	if (r.GetSerial() == "") == (r.GetName() == "") {
		return errors.New("a serial number or a name is needed, and not both")
	}
	if r.GetSerial() != "" {
		serial, err := pki.ParseSerial(r.GetSerial())
		if err == nil && serial != r.GetSerial() {
			err = fmt.Errorf("serial number %s is not written as %s", r.GetSerial(), serial)
		}
		if err == nil && (r.GetRole() != attunev1.Role_ROLE_UNSPECIFIED || r.GetBeforeUnix() != 0) {
			err = fmt.Errorf("role and time are for names: serial number %s is one certificate's", serial)
		}
		return err
	}
	return pki.CheckName(r.GetName())
}

// ListRevocations implements the service.
func (s revocations) ListRevocations(ctx context.Context, _ *attunev1.ListRevocationsRequest) (*attunev1.ListRevocationsResponse, error) {
	if _, err := mayRevoke(ctx); err != nil {
		return nil, err
	}
	list, err := s.registry.Revocations(ctx)
	if err != nil {
		return nil, status.Errorf(codes.Unavailable, "the registry does not answer: %v", err)
	}
	return &attunev1.ListRevocationsResponse{Revocations: list}, nil
}
