// SPDX-License-Identifier: Apache-2.0

package pki

import (
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"net/url"
	"os"
	"strings"
	"testing"
	"unicode"

	"github.com/attune-hpc/attune/internal/testing/files"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

func named(t testing.TB, name string, uris ...string) *x509.Certificate {
	t.Helper()
	c := &x509.Certificate{Subject: pkix.Name{CommonName: name}}
	for _, text := range uris {
		uri, err := url.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		c.URIs = append(c.URIs, uri)
	}
	return c
}

func TestPrincipalIn(t *testing.T) {
	tests := []struct {
		name string
		cn   string
		uris []string
		role attunev1.Role
		uid  uint32
		why  string // empty: it is one
	}{
		{"user", "alice", []string{"attune://role/user", "attune://uid/1001"}, attunev1.Role_ROLE_USER, 1001, ""},
		{"admin", "bob", []string{"attune://uid/1002", "attune://role/admin"}, attunev1.Role_ROLE_ADMIN, 1002, ""},
		{"admin without account", "no such account", []string{"attune://role/admin"}, attunev1.Role_ROLE_ADMIN, NoUID, ""},
		{"root as admin", "root", []string{"attune://role/admin"}, attunev1.Role_ROLE_ADMIN, 0, ""},
		{"node", "n1.example.org", []string{"attune://role/node"}, attunev1.Role_ROLE_NODE, NoUID, ""},
		{"node of an account's name", "root", []string{"attune://role/node"}, attunev1.Role_ROLE_NODE, NoUID, ""},
		{"beside others", "alice", []string{"spiffe://x/y", "attune://role/user", "attune://uid/7"}, attunev1.Role_ROLE_USER, 7, ""},
		{"no role", "alice", []string{"attune://uid/1001"}, 0, 0, "without a role"},
		{"nothing", "alice", nil, 0, 0, "without a role"},
		{"unknown role", "alice", []string{"attune://role/king"}, 0, 0, `"king" is no role`},
		{"two roles", "alice", []string{"attune://role/user", "attune://role/admin"}, 0, 0, "more than one role"},
		{"same role twice", "alice", []string{"attune://role/user", "attune://role/user"}, 0, 0, "more than one role"},
		{"two ids", "alice", []string{"attune://role/user", "attune://uid/1", "attune://uid/2"}, 0, 0, "more than one user id"},
		{"unknown claim", "alice", []string{"attune://role/user", "attune://uid/1", "attune://only/mondays"}, 0, 0, "unknown claim"},
		{"root as user", "alice", []string{"attune://role/user", "attune://uid/0"}, 0, 0, "root has no certificate"},
		{"root as user by name", "root", []string{"attune://role/user"}, 0, 0, "root has no certificate"},
		{"nobody's id", "alice", []string{"attune://role/user", "attune://uid/4294967295"}, 0, 0, "is no user id"},
		{"too large an id", "alice", []string{"attune://role/user", "attune://uid/4294967296"}, 0, 0, "is no user id"},
		{"id with a sign", "alice", []string{"attune://role/user", "attune://uid/+1"}, 0, 0, "is no user id"},
		{"id with zeros", "alice", []string{"attune://role/user", "attune://uid/007"}, 0, 0, "is no user id"},
		{"unknown user", "no such account", []string{"attune://role/user"}, 0, 0, "--uid"},
		{"query", "alice", []string{"attune://role/user?x=admin"}, 0, 0, "is no claim"},
		{"fragment", "alice", []string{"attune://role/user#x"}, 0, 0, "is no claim"},
		{"user part", "alice", []string{"attune://admin@role/user"}, 0, 0, "is no claim"},
		{"opaque", "alice", []string{"attune:role/user"}, 0, 0, "is no claim"},
		{"escaped", "alice", []string{"attune://role/%75ser"}, 0, 0, "is no claim"},
		{"no name", "", []string{"attune://role/node"}, 0, 0, "common name"},
		{"name with a line end", "alice\nroot", []string{"attune://role/node"}, 0, 0, "common name"},
		{"name with an escape", "alice\x1b[2J", []string{"attune://role/node"}, 0, 0, "common name"},
		{"name that turns", "alice\u202etoor", []string{"attune://role/node"}, 0, 0, "common name"},
		{"long name", strings.Repeat("a", 257), []string{"attune://role/node"}, 0, 0, "common name"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p, err := PrincipalIn(named(t, tt.cn, tt.uris...))
			if tt.why != "" {
				if err == nil || !strings.Contains(err.Error(), tt.why) || p != nil {
					t.Errorf("%v, %v, want %q", p, err, tt.why)
				}
				return
			}
			if err != nil || p.GetName() != tt.cn || p.GetRole() != tt.role || p.GetUid() != tt.uid {
				t.Errorf("%v, %v", p, err)
			}
		})
	}
}

// TestPrincipalOfVerified: a certificate that nobody has verified says nothing,
// whatever it says.
func TestPrincipalOfVerified(t *testing.T) {
	c := named(t, "mallory", "attune://role/admin")
	for name, state := range map[string]tls.ConnectionState{
		"none":         {},
		"not verified": {PeerCertificates: []*x509.Certificate{c}},
		"by no chain":  {VerifiedChains: [][]*x509.Certificate{{c}}},
	} {
		if p, err := PrincipalOf(state); !errors.Is(err, ErrNoCertificate) {
			t.Errorf("%s: %v, %v", name, p, err)
		}
	}
}

// FuzzPrincipalIn: whoever comes out has a role, an id that goes with it, and a
// name that can be shown.
func FuzzPrincipalIn(f *testing.F) {
	authority, err := NewAuthority("CA", 1<<40)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(authority.certificate.Raw)
	uid := uint32(1001)
	for _, r := range []Request{
		{Name: "alice", Role: attunev1.Role_ROLE_USER, UID: &uid, Valid: 1 << 30},
		{Name: "n1", Role: attunev1.Role_ROLE_NODE, Hosts: []string{"n1", "::1"}, Valid: 1 << 30},
	} {
		issued, err := authority.Issue(r)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(mustDecode(f, issued.Cert))
	}
	f.Fuzz(func(t *testing.T, der []byte) {
		c, err := x509.ParseCertificate(der)
		if err != nil {
			return
		}
		p, err := PrincipalIn(c)
		if err != nil {
			return
		}
		unseen := func(r rune) bool { return !unicode.IsPrint(r) }
		if RoleName(p.GetRole()) == "" || p.GetName() == "" || strings.ContainsFunc(p.GetName(), unseen) {
			t.Errorf("%v", p)
		}
		if p.GetRole() == attunev1.Role_ROLE_USER && (p.GetUid() == 0 || p.GetUid() == NoUID) {
			t.Errorf("a user who is %d", p.GetUid())
		}
	})
}

// FuzzFiles: nothing that a file of certificates holds brings the reader down.
func FuzzFiles(f *testing.F) {
	authority, err := NewAuthority("CA", 1<<40)
	if err != nil {
		f.Fatal(err)
	}
	ca, err := authority.PEM()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(ca.Cert)
	f.Add(append(ca.Cert, ca.Key...))
	f.Add([]byte("-----BEGIN CERTIFICATE-----\n-----END CERTIFICATE-----\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		if pool, err := parsePool(data); (pool == nil) != (err != nil) {
			t.Errorf("%v, %v", pool, err)
		}
	})
}

func mustDecode(t testing.TB, data []byte) []byte {
	t.Helper()
	list, err := decodeCertificates(data)
	if err != nil {
		t.Fatal(err)
	}
	return list[0].Raw
}

func TestReadFile(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Log("as root a group may read a key as well")
	}
	tests := []struct {
		name   string
		mode   os.FileMode
		secret secrecy
		why    string
	}{
		{"key", 0o600, private, ""},
		{"key for reading", 0o400, private, ""},
		{"key for everybody", 0o604, private, "may be read by others: chmod 600"},
		{"certificate", 0o644, public, ""},
		{"certificate that a group may write", 0o664, public, "may be written by others: chmod go-w"},
		{"certificate that everybody may write", 0o646, public, "may be written by others"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			path := t.TempDir() + "/file"
			files.Write(t, path, "x", 0o600)
			if err := os.Chmod(path, tt.mode); err != nil {
				t.Fatal(err)
			}
			_, err := readFile(path, tt.secret, os.Geteuid())
			if tt.why == "" && err != nil || tt.why != "" && (err == nil || !strings.Contains(err.Error(), tt.why)) {
				t.Errorf("%v, want %q", err, tt.why)
			}
		})
	}
	if _, err := readFile(t.TempDir(), public, os.Geteuid()); err == nil {
		t.Error("a directory is read")
	}
}
