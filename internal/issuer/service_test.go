// SPDX-License-Identifier: Apache-2.0

package issuer

import (
	"bytes"
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"log/slog"
	"net"
	"net/url"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/status"

	"github.com/attune-hpc/attune/internal/authn"
	"github.com/attune-hpc/attune/internal/pki"
	"github.com/attune-hpc/attune/internal/testing/leaktest"
	"github.com/attune-hpc/attune/internal/testing/lockedtext"
	"github.com/attune-hpc/attune/internal/testing/pkitest"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

const week = 7 * 24 * time.Hour

// served is an issuing service in a network.
type served struct {
	site    *pkitest.Site
	clock   *pkitest.Clock // by which peers' certificates hold
	address string
	log     lockedtext.Text
	revoked func(*x509.Certificate) bool
}

func serve(t *testing.T, network string) *served {
	t.Helper()
	s := &served{site: pkitest.New(t), clock: new(pkitest.Clock), revoked: func(*x509.Certificate) bool { return false }}
	ca := s.site.Issuer(t)
	service := New(Options{
		Authority: func() (*pki.Authority, error) { return ca, nil }, Valid: week,
		Revoked: func(c *x509.Certificate) bool { return s.revoked(c) },
		Log:     slog.New(slog.NewTextHandler(&s.log, nil)),
	})
	server := NewServer(service, authn.New(authn.Options{Identity: s.site.NodeAt(t, "issuer", s.clock)}))
	where := "127.0.0.1:0"
	if network == "unix" {
		where = filepath.Join(t.TempDir(), "s")
	}
	listener, err := net.Listen(network, where)
	if err != nil {
		t.Fatal(err)
	}
	s.address = listener.Addr().String()
	if network == "unix" {
		s.address = "unix:" + s.address
	}
	done := make(chan error, 1)
	go func() { done <- server.Serve(listener) }()
	t.Cleanup(func() {
		server.Stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return s
}

// dial connects with any credentials.
func (s *served) dial(t *testing.T, creds credentials.TransportCredentials) attunev1.CertificateServiceClient {
	t.Helper()
	conn, err := grpc.NewClient(s.address, grpc.WithTransportCredentials(creds))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return attunev1.NewCertificateServiceClient(conn)
}

// as connects with a certificate as a template has it.
func (s *served) as(t *testing.T, spoil func(*x509.Certificate)) attunev1.CertificateServiceClient {
	t.Helper()
	template := pkitest.Template()
	if spoil != nil {
		spoil(template)
	}
	return s.dial(t, credentials.NewTLS(&tls.Config{RootCAs: s.site.Roots(), Certificates: []tls.Certificate{s.site.Sign(t, template)}}))
}

func renew(t *testing.T, client attunev1.CertificateServiceClient, request []byte) ([]*x509.Certificate, error) {
	t.Helper()
	answer, err := client.Renew(t.Context(), &attunev1.RenewRequest{CertificateRequest: request})
	var chain []*x509.Certificate
	for rest := answer.GetCertificates(); len(rest) > 0; {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			t.Fatalf("no certificate: %q", rest)
		}
		c, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			t.Fatal(err)
		}
		chain = append(chain, c)
	}
	return chain, err
}

// request asks as a template has it, with a key of its own.
func request(t *testing.T, template *x509.CertificateRequest) []byte {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return requestFor(t, template, key)
}

func requestFor(t *testing.T, template *x509.CertificateRequest, key crypto.Signer) []byte {
	t.Helper()
	der, err := x509.CreateCertificateRequest(rand.Reader, template, key)
	if err != nil {
		t.Fatal(err)
	}
	return der
}

func uri(text string) *url.URL {
	u, err := url.Parse(text)
	if err != nil {
		panic(err)
	}
	return u
}

// ambitious asks for everything.
func ambitious() *x509.CertificateRequest {
	return &x509.CertificateRequest{
		Subject: pkix.Name{CommonName: "root", Organization: []string{"wheel"}}, DNSNames: []string{"head"},
		IPAddresses: []net.IP{net.IPv4(10, 0, 0, 1)}, EmailAddresses: []string{"root@head"},
		URIs:            []*url.URL{uri("attune://role/admin"), uri("attune://uid/0")},
		ExtraExtensions: []pkix.Extension{{Id: []int{2, 5, 29, 19}, Critical: true, Value: []byte{0x30, 3, 1, 1, 0xff}}}, // a CA
	}
}

// TestRequestNamesAnother: whatever a request asks for, what is issued says what the
// caller's certificate says, for one more life.
func TestRequestNamesAnother(t *testing.T) {
	s := serve(t, "tcp")
	for _, row := range []struct {
		name  string
		spoil func(*x509.Certificate)
		uris  string
	}{
		{"user", nil, "attune://role/user attune://uid/1001"},
		{"user who serves nothing", func(c *x509.Certificate) {
			c.IPAddresses, c.ExtKeyUsage = nil, []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
		}, "attune://role/user attune://uid/1001"},
		{"admin", func(c *x509.Certificate) { c.URIs[0] = uri("attune://role/admin") }, "attune://role/admin attune://uid/1001"},
		{"node", func(c *x509.Certificate) { c.URIs = []*url.URL{uri("attune://role/node")} }, "attune://role/node"},
	} {
		t.Run(row.name, func(t *testing.T) {
			earlier := pkitest.Template()
			if row.spoil != nil {
				row.spoil(earlier)
			}
			chain, err := renew(t, s.as(t, row.spoil), request(t, ambitious()))
			if err != nil || len(chain) != 2 {
				t.Fatalf("%v, %v", chain, err)
			}
			got := chain[0]
			if got.Subject.String() != "CN=alice" || len(got.DNSNames)+len(got.EmailAddresses) > 0 || got.IsCA ||
				len(got.IPAddresses) != len(earlier.IPAddresses) || len(got.ExtKeyUsage) != len(earlier.ExtKeyUsage) || got.KeyUsage != x509.KeyUsageDigitalSignature {
				t.Errorf("issued to %v, names %v %v %v, usages %v %v", got.Subject, got.DNSNames, got.IPAddresses, got.EmailAddresses, got.KeyUsage, got.ExtKeyUsage)
			}
			var uris []string
			for _, u := range got.URIs {
				uris = append(uris, u.String())
			}
			if text := strings.Join(uris, " "); text != row.uris {
				t.Errorf("URIs %s, want %s", text, row.uris)
			}
			if left := time.Until(got.NotAfter); left > week || left < week-time.Minute {
				t.Errorf("it holds for %v", left)
			}
			between := x509.NewCertPool()
			between.AddCert(chain[1])
			if _, err := got.Verify(x509.VerifyOptions{Roots: s.site.Roots(), Intermediates: between, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}); err != nil {
				t.Error(err)
			}
			line := "serial=" + got.SerialNumber.Text(16) + " name=alice role=" + strings.TrimPrefix(strings.Fields(row.uris)[0], "attune://role/") + " until="
			if !strings.Contains(s.log.String(), line) {
				t.Errorf("the log has no %q: %s", line, &s.log)
			}
		})
	}
}

// TestBadRequests: a request that is none, or whose sender has not the key, or that
// costs much, gets nothing.
func TestBadRequests(t *testing.T) {
	s := serve(t, "tcp")
	good := request(t, new(x509.CertificateRequest))
	unsigned := bytes.Clone(good)
	unsigned[len(unsigned)-1] ^= 1
	large := request(t, &x509.CertificateRequest{DNSNames: []string{strings.Repeat("a", pki.MaxRequest)}})
	weak, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	slow, err := ecdsa.GenerateKey(elliptic.P521(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	for n, row := range []struct {
		name    string
		request []byte
		code    codes.Code
	}{
		{"nothing", nil, codes.InvalidArgument},
		{"garbage", []byte("hello"), codes.InvalidArgument},
		{"more behind it", append(bytes.Clone(good), 0), codes.InvalidArgument},
		{"signature of another key", unsigned, codes.InvalidArgument},
		{"larger than a request", large, codes.InvalidArgument},
		{"larger than a message", make([]byte, 1<<20), codes.ResourceExhausted},
		{"RSA", requestFor(t, new(x509.CertificateRequest), weak), codes.InvalidArgument},
		{"P-521", requestFor(t, new(x509.CertificateRequest), slow), codes.InvalidArgument},
		{"a good one", good, codes.OK}, // or the others would prove nothing
	} {
		t.Run(row.name, func(t *testing.T) {
			client := s.as(t, func(c *x509.Certificate) { c.Subject.CommonName = "user " + string(rune('a'+n)) }) // who has not asked yet
			chain, err := renew(t, client, row.request)
			if status.Code(err) != row.code || (len(chain) == 0) != (row.code != codes.OK) {
				t.Errorf("%d certificates, %v; want %v", len(chain), err, row.code)
			}
		})
	}
}

// TestBadCertificates: whose certificate does not hold, or is none of the site's, gets
// no other one.
func TestBadCertificates(t *testing.T) {
	s, other := serve(t, "tcp"), pkitest.New(t)
	for _, row := range []struct {
		name   string
		client attunev1.CertificateServiceClient
		code   codes.Code
	}{
		{"expired", s.as(t, func(c *x509.Certificate) { c.NotAfter = time.Now().Add(-time.Second) }), codes.Unavailable},
		{"not yet valid", s.as(t, func(c *x509.Certificate) { c.NotBefore = time.Now().Add(time.Minute) }), codes.Unavailable},
		{"another CA", s.dial(t, credentials.NewTLS(&tls.Config{RootCAs: s.site.Roots(), Certificates: []tls.Certificate{other.Sign(t, pkitest.Template())}})), codes.Unavailable},
		{"none", s.dial(t, credentials.NewTLS(&tls.Config{RootCAs: s.site.Roots()})), codes.Unavailable},
		{"without a role", s.as(t, func(c *x509.Certificate) { c.URIs = nil }), codes.Unavailable},
		{"two roles", s.as(t, func(c *x509.Certificate) { c.URIs = append(c.URIs, uri("attune://role/admin")) }), codes.Unavailable},
		{"a CA's", s.as(t, func(c *x509.Certificate) { c.IsCA, c.BasicConstraintsValid = true, true }), codes.InvalidArgument},
		{"for signing code as well", s.as(t, func(c *x509.Certificate) { c.ExtKeyUsage = append(c.ExtKeyUsage, x509.ExtKeyUsageCodeSigning) }), codes.InvalidArgument},
		{"good", s.as(t, nil), codes.OK},
	} {
		t.Run(row.name, func(t *testing.T) {
			chain, err := renew(t, row.client, request(t, new(x509.CertificateRequest)))
			if status.Code(err) != row.code || (len(chain) == 0) != (row.code != codes.OK) {
				t.Errorf("%d certificates, %v; want %v", len(chain), err, row.code)
			}
		})
	}
}

// TestExpiresMeanwhile: who has connected in time does not renew when it is over.
func TestExpiresMeanwhile(t *testing.T) {
	s := serve(t, "tcp")
	client := s.as(t, nil)
	if _, err := renew(t, client, request(t, new(x509.CertificateRequest))); err != nil {
		t.Fatal(err)
	}
	s.clock.Set(2 * time.Hour)
	if _, err := renew(t, client, request(t, new(x509.CertificateRequest))); status.Code(err) != codes.Unauthenticated {
		t.Errorf("%v", err)
	}
}

// TestRevoked: a certificate that was revoked is not issued once more.
func TestRevoked(t *testing.T) {
	s := serve(t, "tcp")
	s.revoked = func(c *x509.Certificate) bool { return c.Subject.CommonName == "alice" }
	if _, err := renew(t, s.as(t, nil), request(t, new(x509.CertificateRequest))); status.Code(err) != codes.PermissionDenied {
		t.Errorf("%v", err)
	}
	bob := s.as(t, func(c *x509.Certificate) { c.Subject.CommonName = "bob" })
	if _, err := renew(t, bob, request(t, new(x509.CertificateRequest))); err != nil {
		t.Error(err)
	}
}

// TestFlood: who asks without end is refused, in vain or not, on however many
// connections, and others are served.
func TestFlood(t *testing.T) {
	s := serve(t, "tcp")
	served, refused := 0, 0
	for n := range 4 * mostInPeriod {
		var asked []byte
		if n%2 == 0 {
			asked = request(t, new(x509.CertificateRequest))
		}
		switch _, err := renew(t, s.as(t, nil), asked); status.Code(err) {
		case codes.OK:
			served++
		case codes.ResourceExhausted:
			refused++
		}
	}
	if served != mostInPeriod/2 || refused != 3*mostInPeriod {
		t.Errorf("%d served, %d refused", served, refused)
	}
	bob := s.as(t, func(c *x509.Certificate) { c.Subject.CommonName = "bob" })
	if _, err := renew(t, bob, request(t, new(x509.CertificateRequest))); err != nil {
		t.Errorf("another: %v", err)
	}
}

// TestUnixSocket: the kernel's word for a process is no certificate.
func TestUnixSocket(t *testing.T) {
	s := serve(t, "unix")
	client := s.dial(t, authn.New(authn.Options{}))
	if _, err := renew(t, client, request(t, new(x509.CertificateRequest))); status.Code(err) != codes.FailedPrecondition {
		t.Errorf("%v", err)
	}
}

// TestCAIsAway: without a CA nothing is issued, and with the next one at once.
func TestCAIsAway(t *testing.T) {
	site := pkitest.New(t)
	var ca *pki.Authority
	s := New(Options{Valid: week, Authority: func() (*pki.Authority, error) {
		if ca == nil {
			return nil, context.DeadlineExceeded
		}
		return ca, nil
	}})
	leaf := site.Node(t, "n1").Leaf()
	if _, err := s.Issue(leaf, request(t, new(x509.CertificateRequest))); status.Code(err) != codes.Unavailable {
		t.Errorf("%v", err)
	}
	ca = site.Issuer(t)
	if _, err := s.Issue(leaf, request(t, new(x509.CertificateRequest))); err != nil {
		t.Error(err)
	}
}
