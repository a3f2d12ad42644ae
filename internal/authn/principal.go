// SPDX-License-Identifier: Apache-2.0

package authn

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"os/user"
	"strconv"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"

	"github.com/attune-hpc/attune/internal/peercred"
	"github.com/attune-hpc/attune/internal/pki"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// Info is what the credentials of this package know of a peer.
type Info struct {
	credentials.CommonAuthInfo
	// Principal is who it is. It is shared and must not be changed.
	Principal *attunev1.Principal
	// PID is its process, as far as this machine's kernel knows; else 0.
	PID int
	// Expires is when its certificate ends; zero: there is none.
	Expires time.Time
	// now is the clock that says whether it has ended.
	now func() time.Time
	// tls is for those who look for more.
	tls *credentials.TLSInfo
}

// AuthType names the way in which the peer was told.
func (i Info) AuthType() string {
	if i.tls != nil {
		return i.tls.AuthType()
	}
	return "so_peercred"
}

// ValidateAuthority says whether a call may name another server than the one
// that was dialled.
func (i Info) ValidateAuthority(authority string) error {
	if i.tls != nil {
		return i.tls.ValidateAuthority(authority)
	}
	return nil
}

// secured is true of both ways: what goes over a Unix socket does not leave the
// kernel.
var secured = credentials.CommonAuthInfo{SecurityLevel: credentials.PrivacyAndIntegrity}

func ofPeer(p peercred.Peer) Info {
	return Info{CommonAuthInfo: secured, Principal: OfUser(uint32(p.UID)), PID: p.PID}
}

func ofTLS(auth credentials.AuthInfo, now func() time.Time) (Info, error) {
	info, ok := auth.(credentials.TLSInfo)
	if !ok {
		return Info{}, fmt.Errorf("%w: %T", ErrNotKnown, auth)
	}
	principal, err := pki.PrincipalOf(info.State)
	if err != nil {
		return Info{}, err
	}
	expires := info.State.PeerCertificates[0].NotAfter
	return Info{CommonAuthInfo: secured, Principal: principal, Expires: expires, now: now, tls: &info}, nil
}

// ServiceUser is the name of the user as whom a site's Analyzer runs on this
// machine: with root, which runs the nodes' part, the site's services.
const ServiceUser = "attune"

// maxSystemUID is the highest id of users that are made for services. A person who
// is called as one is none.
const maxSystemUID = 999

// OfUser is the principal that a user of this machine is: root a node,
// [ServiceUser] an Analyzer, everybody else a user. Its name is the number where the machine does not
// know one.
func OfUser(uid uint32) *attunev1.Principal {
	p := &attunev1.Principal{Name: strconv.FormatUint(uint64(uid), 10), Uid: uid, Role: attunev1.Role_ROLE_USER}
	if found, err := user.LookupId(p.GetName()); err == nil {
		p.Name = found.Username
	}
	switch {
	case uid == 0:
		p.Role = attunev1.Role_ROLE_NODE
	case p.GetName() == ServiceUser && uid <= maxSystemUID:
		p.Role = attunev1.Role_ROLE_ANALYZER
	}
	return p
}

// Self is the principal that this process is on a Unix socket.
func Self() *attunev1.Principal { return OfUser(uint32(os.Geteuid())) }

// InfoFrom returns what is known of the peer of a call, on either side: from the
// context of a server's handler, or of a client's stream. The error is a gRPC
// status, Unauthenticated, also when the peer's certificate has ended since it
// connected.
func InfoFrom(ctx context.Context) (Info, error) {
	p, ok := peer.FromContext(ctx)
	if !ok {
		return Info{}, status.Error(codes.Unauthenticated, "nobody is connected")
	}
	info, ok := p.AuthInfo.(Info)
	if !ok || info.Principal == nil {
		return Info{}, status.Error(codes.Unauthenticated, ErrNotKnown.Error())
	}
	if !info.Expires.IsZero() && info.now().After(info.Expires) {
		return Info{}, status.Errorf(codes.Unauthenticated, "the certificate of %s has expired since it connected", info.Principal.GetName())
	}
	return info, nil
}

// PrincipalFrom is the principal of InfoFrom. It must not be changed.
func PrincipalFrom(ctx context.Context) (*attunev1.Principal, error) {
	info, err := InfoFrom(ctx)
	return info.Principal, err
}

// PersonFrom is PrincipalFrom for what people ask. A service's certificate speaks
// for no person: the error is PermissionDenied. Root, whom the kernel names, does.
func PersonFrom(ctx context.Context) (*attunev1.Principal, error) {
	p, err := PrincipalFrom(ctx)
	if err == nil && pki.OfService(p.GetRole()) && p.GetUid() == pki.NoUID {
		return nil, status.Errorf(codes.PermissionDenied, "%s has a certificate of role %s, which is a service's and speaks for no person: come with a person's, of role admin for those of everybody, or as root of the Analyzer's machine", p.GetName(), pki.RoleName(p.GetRole()))
	}
	return p, err
}

// ErrNotAdmitted is why a known peer is not let in.
var ErrNotAdmitted = errors.New("not let in")

// OwnAndRoot lets in this process' user and root.
func OwnAndRoot(p *attunev1.Principal) error {
	if own := os.Geteuid(); p.GetUid() != 0 && int64(p.GetUid()) != int64(own) {
		return fmt.Errorf("%w: peer is user %d, only user %d and root may connect", ErrNotAdmitted, p.GetUid(), own)
	}
	return nil
}

// Reaches says whether somebody may observe and tune processes of a user: a user
// their own, admins and services everybody's. It is the first question of all, and
// a yes leaves the site's policy to be asked.
func Reaches(p *attunev1.Principal, uid uint32) bool {
	switch p.GetRole() {
	case attunev1.Role_ROLE_ADMIN, attunev1.Role_ROLE_NODE, attunev1.Role_ROLE_ANALYZER:
		return true
	case attunev1.Role_ROLE_USER:
		return p.GetUid() == uid && uid != pki.NoUID
	}
	return false
}

// Certificate is the peer's, verified; nil on a Unix socket. It is shared and must not
// be changed.
func (i Info) Certificate() *x509.Certificate {
	if i.tls == nil {
		return nil
	}
	return i.tls.State.PeerCertificates[0]
}
