// SPDX-License-Identifier: Apache-2.0

package pki

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/url"
	"os/user"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// NoUID is the user id of a principal that has none: a service, or an admin
// without an account here. It is no process' (setresuid(2) takes it for "leave
// as it is").
const NoUID = ^uint32(0)

// scheme is that of the URIs in certificates.
const scheme = "attune"

// maxName bounds the common name, bytes; X.520 has 64 characters.
const maxName = 256

var (
	// ErrNoCertificate means that the peer has shown none, or that nobody has
	// verified it.
	ErrNoCertificate = errors.New("no verified certificate")
	// ErrNoRole means that a certificate says nothing to Attune.
	ErrNoRole = errors.New("certificate without a role: it needs a URI attune://role/ROLE among its alternative names, as attune cert issue writes it")
)

// roles by the word that certificates and commands have for them.
var roles = map[string]attunev1.Role{
	"user":     attunev1.Role_ROLE_USER,
	"admin":    attunev1.Role_ROLE_ADMIN,
	"node":     attunev1.Role_ROLE_NODE,
	"analyzer": attunev1.Role_ROLE_ANALYZER,
}

// ParseRole is the role of a word: user, admin, node or analyzer.
func ParseRole(word string) (attunev1.Role, error) {
	if role, ok := roles[word]; ok {
		return role, nil
	}
	return attunev1.Role_ROLE_UNSPECIFIED, fmt.Errorf("%q is no role: there are user, admin, node, analyzer", word)
}

// RoleName is the word for a role, empty for none.
func RoleName(role attunev1.Role) string {
	for word, r := range roles {
		if r == role {
			return word
		}
	}
	return ""
}

// OfService says whether a role is that of a service of the site, not of a person.
func OfService(role attunev1.Role) bool {
	return role == attunev1.Role_ROLE_NODE || role == attunev1.Role_ROLE_ANALYZER
}

// PrincipalOf says who is at the other end of a connection: whoever its
// certificate names. The certificate must have been verified by the handshake.
func PrincipalOf(state tls.ConnectionState) (*attunev1.Principal, error) {
	if len(state.PeerCertificates) == 0 || len(state.VerifiedChains) == 0 {
		return nil, ErrNoCertificate
	}
	return PrincipalIn(state.PeerCertificates[0])
}

// PrincipalIn is whom a certificate names. Whether it can be believed is not
// asked. Without an id in it that of a user is the one which this machine knows
// for the name; unknown here they are refused. Services have [NoUID].
func PrincipalIn(certificate *x509.Certificate) (*attunev1.Principal, error) {
	name := certificate.Subject.CommonName
	if err := CheckName(name); err != nil {
		return nil, err
	}
	said, err := parseURIs(certificate.URIs)
	if err != nil {
		return nil, fmt.Errorf("certificate of %q: %w", name, err)
	}
	uid, err := said.userID(name)
	if err != nil {
		return nil, fmt.Errorf("certificate of %q: %w", name, err)
	}
	return &attunev1.Principal{Name: name, Uid: uid, Role: said.role}, nil
}

// CheckName takes what can be shown on one line of a log or a terminal.
func CheckName(name string) error {
	notShown := func(r rune) bool { return !unicode.IsPrint(r) }
	if name == "" || len(name) > maxName || !utf8.ValidString(name) || strings.ContainsFunc(name, notShown) {
		return fmt.Errorf("common name %.80q of a certificate: want 1 to %d printable bytes", name, maxName)
	}
	return nil
}

// claims are what the URIs of a certificate say.
type claims struct {
	role attunev1.Role
	uid  *uint32
}

// parseURIs reads those of Attune. One that is not known may restrict what the
// certificate is good for, so it is refused.
func parseURIs(uris []*url.URL) (claims, error) {
	var said claims
	for _, uri := range uris {
		if uri.Scheme != scheme {
			continue
		}
		value, rooted := strings.CutPrefix(uri.Path, "/")
		if !rooted || uri.String() != claim(uri.Host, value).String() {
			return claims{}, fmt.Errorf("%.80q is no claim", uri)
		}
		if err := said.take(uri.Host, value); err != nil {
			return claims{}, err
		}
	}
	if said.role == attunev1.Role_ROLE_UNSPECIFIED {
		return claims{}, ErrNoRole
	}
	return said, nil
}

func (c *claims) take(kind, value string) error {
	switch kind {
	case "role":
		role, err := ParseRole(value)
		if err == nil && c.role != attunev1.Role_ROLE_UNSPECIFIED {
			err = errors.New("more than one role")
		}
		c.role = role
		return err
	case "uid":
		id, err := strconv.ParseUint(value, 10, 32)
		uid := uint32(id)
		if err != nil || uid == NoUID || strconv.FormatUint(id, 10) != value {
			return fmt.Errorf("%.80q is no user id", value)
		}
		if c.uid != nil {
			return errors.New("more than one user id")
		}
		c.uid = &uid
		return nil
	}
	return fmt.Errorf("unknown claim %.80q: is it of a later version of Attune?", kind)
}

// claim is the URI by which a certificate says something.
func claim(kind, value string) *url.URL {
	return &url.URL{Scheme: scheme, Host: kind, Path: "/" + value}
}

// userID is the id that goes with a name. Root is an admin's or nobody's: who is
// only a user must not get to what root may.
func (c claims) userID(name string) (uint32, error) {
	if OfService(c.role) {
		return NoUID, nil
	}
	uid := NoUID
	if c.uid != nil {
		uid = *c.uid
	} else if found, err := lookUp(name); err == nil {
		uid = found
	} else if c.role == attunev1.Role_ROLE_USER {
		return 0, fmt.Errorf("user id: %w; issue a certificate that names the id (attune cert issue --uid)", err)
	}
	if uid == 0 && c.role == attunev1.Role_ROLE_USER {
		return 0, errors.New("root has no certificate of role user: issue one of role admin")
	}
	return uid, nil
}

// lookUp is the id of a user of this machine.
func lookUp(name string) (uint32, error) {
	found, err := user.Lookup(name)
	if err != nil {
		return 0, err
	}
	id, err := strconv.ParseUint(found.Uid, 10, 32)
	return uint32(id), err
}
