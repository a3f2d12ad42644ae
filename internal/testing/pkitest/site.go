// SPDX-License-Identifier: Apache-2.0

// Package pkitest makes certificates for tests, by a CA of the test's own.
package pkitest

import (
	"cmp"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/attune-hpc/attune/internal/pki"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// Site is a CA with a directory of what it has issued.
type Site struct {
	dir       string
	authority *pki.Authority
}

// New makes a CA. What it makes is removed with the test.
func New(t testing.TB) *Site {
	t.Helper()
	authority, err := pki.NewAuthority("test", 365*24*time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	s := &Site{dir: t.TempDir(), authority: authority}
	ca, err := authority.PEM()
	if err != nil {
		t.Fatal(err)
	}
	write(t, s.path("ca.crt"), ca.Cert)
	return s
}

func (s *Site) path(name string) string { return filepath.Join(s.dir, name) }

// Issue makes a certificate and returns where it is. Valid 0: an hour. A second
// one of the same name replaces the first.
func (s *Site) Issue(t testing.TB, r pki.Request) pki.Files {
	t.Helper()
	r.Valid = cmp.Or(r.Valid, time.Hour)
	issued, err := s.authority.Issue(r)
	if err != nil {
		t.Fatal(err)
	}
	files := pki.FilesIn(s.dir, r.Name)
	write(t, files.Key, issued.Key)
	write(t, files.Cert, issued.Cert)
	return files
}

// Issuer makes an issuing CA of the site.
func (s *Site) Issuer(t testing.TB) *pki.Authority {
	t.Helper()
	issuer, err := s.authority.NewIssuer("issuer", 300*24*time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	return issuer
}

// Node makes a certificate for a node that serves on this machine's loopback,
// and opens it.
func (s *Site) Node(t testing.TB, name string) *pki.Identity {
	t.Helper()
	return s.NodeAt(t, name, new(Clock))
}

// NodeAt is Node by a clock of the test's own.
func (s *Site) NodeAt(t testing.TB, name string, clock *Clock) *pki.Identity {
	t.Helper()
	return s.serviceAt(t, name, attunev1.Role_ROLE_NODE, clock)
}

// Analyzer is Node for an Analyzer.
func (s *Site) Analyzer(t testing.TB, name string) *pki.Identity {
	t.Helper()
	return s.AnalyzerAt(t, name, new(Clock))
}

// AnalyzerAt is NodeAt for an Analyzer.
func (s *Site) AnalyzerAt(t testing.TB, name string, clock *Clock) *pki.Identity {
	t.Helper()
	return s.serviceAt(t, name, attunev1.Role_ROLE_ANALYZER, clock)
}

func (s *Site) serviceAt(t testing.TB, name string, role attunev1.Role, clock *Clock) *pki.Identity {
	t.Helper()
	return OpenAt(t, s.Issue(t, pki.Request{Name: name, Role: role, Hosts: []string{"localhost", "127.0.0.1", "::1"}}), clock)
}

// User makes a certificate for a user and opens it.
func (s *Site) User(t testing.TB, name string, uid uint32) *pki.Identity {
	t.Helper()
	return Open(t, s.Issue(t, pki.Request{Name: name, Role: attunev1.Role_ROLE_USER, UID: &uid}))
}

// Open opens an identity, which has to be good.
func Open(t testing.TB, files pki.Files) *pki.Identity {
	t.Helper()
	return OpenAt(t, files, new(Clock))
}

// Clock is the machine's until a test sets it. It may be used from any
// goroutine.
type Clock struct{ ahead atomic.Int64 }

// Now is what the clock shows.
func (c *Clock) Now() time.Time { return time.Now().Add(time.Duration(c.ahead.Load())) }

// Set sets the clock so far ahead of the machine's; less than 0: behind it.
func (c *Clock) Set(ahead time.Duration) { c.ahead.Store(int64(ahead)) }

// OpenAt opens an identity, which has to be good, by a clock of the test's own.
func OpenAt(t testing.TB, files pki.Files, clock *Clock) *pki.Identity {
	t.Helper()
	identity, err := pki.OpenAt(files, nil, clock.Now)
	if err != nil {
		t.Fatal(err)
	}
	return identity
}

// write replaces a file as a whole.
func write(t testing.TB, path string, data []byte) {
	t.Helper()
	if err := os.WriteFile(path+".new", data, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
}

// Template is a user's certificate that every peer takes, for tests to spoil.
func Template() *x509.Certificate {
	return &x509.Certificate{
		Subject:   pkix.Name{CommonName: "alice"},
		NotBefore: time.Now().Add(-time.Minute), NotAfter: time.Now().Add(time.Hour),
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		URIs: []*url.URL{
			{Scheme: "attune", Host: "role", Path: "/user"},
			{Scheme: "attune", Host: "uid", Path: "/1001"},
		},
	}
}

// Sign makes a key and a certificate as the template has it, whether anybody
// would take it or not.
func (s *Site) Sign(t testing.TB, template *x509.Certificate) tls.Certificate {
	t.Helper()
	ca, err := s.authority.PEM()
	if err != nil {
		t.Fatal(err)
	}
	issuer, err := tls.X509KeyPair(ca.Cert, ca.Key)
	if err != nil {
		t.Fatal(err)
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.CreateCertificate(rand.Reader, template, issuer.Leaf, key.Public(), issuer.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

// Roots are the CA's certificate.
func (s *Site) Roots() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(s.authority.Certificate())
	return pool
}
