// SPDX-License-Identifier: Apache-2.0

package issuer

import (
	"cmp"
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/status"

	"github.com/attune-hpc/attune/internal/authn"
	"github.com/attune-hpc/attune/internal/pki"
	"github.com/attune-hpc/attune/internal/quota"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// Options say what is issued.
type Options struct {
	// Authority is the issuing CA. It is asked for each certificate, so that a CA that
	// was replaced is used at once.
	Authority func() (*pki.Authority, error)
	// Valid is for how long certificates hold.
	Valid time.Duration
	// Revoked says whether a certificate was revoked; it is then not renewed. Nil: none
	// is.
	Revoked func(*x509.Certificate) bool
	// Log is told of each certificate. Nil: nobody is.
	Log *slog.Logger
}

// Service issues certificates once more.
type Service struct {
	attunev1.UnimplementedCertificateServiceServer

	options Options
	log     *slog.Logger
	asks    *quota.Rate[string] // by caller
	// reminded is when the log was told last of the CA's end, seconds since 1970.
	reminded atomic.Int64
}

// New returns a service that has issued nothing.
func New(o Options) *Service {
	o.Log = cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	if o.Revoked == nil {
		o.Revoked = func(*x509.Certificate) bool { return false }
	}
	asks := quota.NewRate[string](mostInPeriod, o.Valid/periods/mostInPeriod)
	return &Service{options: o, log: o.Log.With("component", "issuer"), asks: asks}
}

const (
	// periods is how many periods the time of a certificate has.
	periods = 24
	// mostInPeriod is how often somebody may ask in one of them. Once in two thirds of
	// the certificate's time is enough where all goes well.
	mostInPeriod = 8
)

// Renew implements the service: the certificate is that of the connection.
func (s *Service) Renew(ctx context.Context, q *attunev1.RenewRequest) (*attunev1.RenewResponse, error) {
	info, err := authn.InfoFrom(ctx)
	if err != nil {
		return nil, err
	}
	if info.Certificate() == nil {
		return nil, status.Error(codes.FailedPrecondition, "there is no certificate to renew on a Unix socket")
	}
	chain, err := s.Issue(info.Certificate(), q.GetCertificateRequest())
	if err != nil {
		return nil, err
	}
	return &attunev1.RenewResponse{Certificates: chain}, nil
}

// Issue is Renew of a certificate that the caller has verified. Errors are gRPC
// statuses.
func (s *Service) Issue(earlier *x509.Certificate, request []byte) ([]byte, error) {
	who, err := pki.PrincipalIn(earlier)
	if err != nil {
		return nil, status.Error(codes.PermissionDenied, err.Error())
	}
	name := fmt.Sprintf("%s %s", pki.RoleName(who.GetRole()), who.GetName())
	if !s.asks.Take(name) {
		return nil, status.Errorf(codes.ResourceExhausted, "%s asks too often: at most %d times in %v", name, mostInPeriod, s.options.Valid/periods)
	}
	if s.options.Revoked(earlier) {
		return nil, status.Errorf(codes.PermissionDenied, "the certificate of %s was revoked", name)
	}
	authority, err := s.options.Authority()
	if err != nil {
		s.log.Error("nothing is issued: the CA cannot be used", "error", err)
		return nil, status.Error(codes.Unavailable, "the issuing CA cannot be used")
	}
	s.remind(authority.Certificate())
	chain, issued, err := authority.Reissue(earlier, request, s.options.Valid)
	if errors.Is(err, pki.ErrRequest) {
		return nil, status.Error(codes.InvalidArgument, err.Error())
	}
	if err != nil {
		s.log.Error("nothing is issued", "error", err)
		return nil, status.Error(codes.Unavailable, err.Error())
	}
	s.log.Info("certificate issued", "serial", pki.SerialOf(issued), "name", who.GetName(), "role", pki.RoleName(who.GetRole()),
		"until", issued.NotAfter, "instead_of", pki.SerialOf(earlier))
	return chain, nil
}

// remind tells the log once a day that the CA is about to end.
func (s *Service) remind(ca *x509.Certificate) {
	now := time.Now()
	if before := s.reminded.Load(); pki.ExpiresSoon(ca, now) && now.Unix()-before >= int64(reminder/time.Second) && s.reminded.CompareAndSwap(before, now.Unix()) {
		s.log.Warn("the issuing CA expires soon: make another one with attune cert init --issuer", "name", ca.Subject.CommonName, "expires", ca.NotAfter)
	}
}

// reminder is how often the log is told that the CA ends soon.
const reminder = 24 * time.Hour

const (
	// maxMessage bounds a message, bytes: a request and what gRPC adds.
	maxMessage = pki.MaxRequest + 1<<10
	// handshake is how long a connection may take to say who it is, and lasting how long
	// it stays: one call needs a fraction of a second.
	handshake = 10 * time.Second
	lasting   = 30 * time.Second
)

// NewServer returns a gRPC server for a Service alone, with its limits.
func NewServer(s *Service, creds credentials.TransportCredentials, more ...grpc.ServerOption) *grpc.Server {
	server := grpc.NewServer(append([]grpc.ServerOption{
		grpc.Creds(creds), grpc.MaxRecvMsgSize(maxMessage), grpc.MaxConcurrentStreams(1), grpc.ConnectionTimeout(handshake),
		grpc.MaxHeaderListSize(8 << 10), grpc.ReadBufferSize(maxMessage), grpc.WriteBufferSize(maxMessage),
		grpc.KeepaliveParams(keepalive.ServerParameters{MaxConnectionIdle: handshake, MaxConnectionAge: lasting, MaxConnectionAgeGrace: handshake}),
	}, more...)...)
	attunev1.RegisterCertificateServiceServer(server, s)
	return server
}
