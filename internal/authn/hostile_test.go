// SPDX-License-Identifier: Apache-2.0

package authn

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/url"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"

	"github.com/attune-hpc/attune/internal/peercred"
	"github.com/attune-hpc/attune/internal/pki"
	"github.com/attune-hpc/attune/internal/testing/patience"
	"github.com/attune-hpc/attune/internal/testing/pkitest"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// spoilt returns a template with something wrong.
func spoilt(spoil func(*x509.Certificate)) *x509.Certificate {
	template := pkitest.Template()
	spoil(template)
	return template
}

func uri(text string) *url.URL {
	u, err := url.Parse(text)
	if err != nil {
		panic(err)
	}
	return u
}

// spoiltCertificates are those that nobody may take, with what the log says.
var spoiltCertificates = []struct {
	name  string
	spoil func(*x509.Certificate)
	why   string
}{
	{"expired", func(c *x509.Certificate) { c.NotAfter = time.Now().Add(-time.Second) }, "expired or is not yet valid"},
	{"not yet valid", func(c *x509.Certificate) { c.NotBefore = time.Now().Add(time.Minute) }, "expired or is not yet valid"},
	{"no role", func(c *x509.Certificate) { c.URIs = nil }, "without a role"},
	{"two roles", func(c *x509.Certificate) { c.URIs = append(c.URIs, uri("attune://role/admin")) }, "more than one role"},
	{"user who is root", func(c *x509.Certificate) { c.URIs[1] = uri("attune://uid/0") }, "root has no certificate of role user"},
	{"later version", func(c *x509.Certificate) { c.URIs = append(c.URIs, uri("attune://until/sunday")) }, "unknown claim"},
	{"no name", func(c *x509.Certificate) { c.Subject.CommonName = "" }, "common name"},
	{"other purpose", func(c *x509.Certificate) { c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageCodeSigning} }, "incompatible key usage"},
}

// TestHostileClients: none of them gets to ask anything.
func TestHostileClients(t *testing.T) {
	site, other := pkitest.New(t), pkitest.New(t)
	type client struct {
		name  string
		creds credentials.TransportCredentials
		why   string
	}
	config := func(certificates ...tls.Certificate) *tls.Config {
		return &tls.Config{RootCAs: site.Roots(), Certificates: certificates}
	}
	old := config(site.Sign(t, pkitest.Template()))
	old.MaxVersion = tls.VersionTLS12
	clients := []client{
		{"no certificate", credentials.NewTLS(config()), "didn't provide a certificate"},
		{"another CA", credentials.NewTLS(config(other.Sign(t, pkitest.Template()))), "unknown authority"},
		{"TLS 1.2", credentials.NewTLS(old), "unsupported version"},
		{"plaintext", insecure.NewCredentials(), "does not look like a TLS handshake"},
		{"for servers only", credentials.NewTLS(config(site.Sign(t, spoilt(func(c *x509.Certificate) {
			c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
		})))), "incompatible key usage"},
	}
	for _, c := range spoiltCertificates {
		clients = append(clients, client{c.name, credentials.NewTLS(config(site.Sign(t, spoilt(c.spoil)))), c.why})
	}
	identity := site.Node(t, "server")
	for _, c := range clients {
		t.Run(c.name, func(t *testing.T) {
			s := mustServe(t, "tcp", Options{Identity: identity})
			if err := check(t, s.address, c.creds); err == nil {
				t.Fatal("it was served")
			}
			if err := <-s.refused; !strings.Contains(err.Error(), c.why) {
				t.Errorf("refused: %v, want %q", err, c.why)
			}
			if len(s.asked) > 0 {
				t.Errorf("%v has asked", <-s.asked)
			}
		})
	}
	t.Run("good one", func(t *testing.T) { // or the others would prove nothing
		s := mustServe(t, "tcp", Options{Identity: identity})
		if err := check(t, s.address, credentials.NewTLS(config(site.Sign(t, pkitest.Template())))); err != nil {
			t.Error(err)
		}
	})
}

// TestConnectionsOfAPerson: who has as many connections as a person may gets no other,
// another person does, and so does the first one when one has ended.
func TestConnectionsOfAPerson(t *testing.T) {
	site := pkitest.New(t)
	s := mustServe(t, "tcp", Options{Identity: site.Node(t, "server")})
	connect := func(who *pki.Identity) error {
		config := who.ClientConfig()
		config.NextProtos = []string{"h2"}
		conn, err := tls.Dial("tcp", s.address, config)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
		_, err = conn.Read(make([]byte, 1)) // the server's settings, or the end
		return err
	}
	ann, bob := site.User(t, "ann", 4711), site.User(t, "bob", 4712)
	for n := range peercred.PerUser {
		if err := connect(ann); err != nil {
			t.Fatalf("connection %d: %v", n, err)
		}
	}
	if err := connect(ann); err == nil {
		t.Fatal("one more is let in")
	}
	if err := <-s.refused; !errors.Is(err, ErrNotAdmitted) {
		t.Errorf("refused: %v", err)
	}
	if err := connect(bob); err != nil {
		t.Errorf("somebody else's: %v", err)
	}
}

// check asks a server once.
func check(t *testing.T, address string, creds credentials.TransportCredentials) error {
	t.Helper()
	conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(creds))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_, err = healthv1.NewHealthClient(conn).Check(t.Context(), &healthv1.HealthCheckRequest{})
	return err
}

// TestHostileServers: a client sends nothing to any of them.
func TestHostileServers(t *testing.T) {
	site, other := pkitest.New(t), pkitest.New(t)
	type server struct {
		name  string
		creds credentials.TransportCredentials
		why   string
	}
	config := func(certificate tls.Certificate) *tls.Config {
		return &tls.Config{Certificates: []tls.Certificate{certificate}}
	}
	old := config(site.Sign(t, pkitest.Template()))
	old.MaxVersion = tls.VersionTLS12
	servers := []server{
		{"another CA", credentials.NewTLS(config(other.Sign(t, pkitest.Template()))), "unknown authority"},
		{"TLS 1.2", credentials.NewTLS(old), "protocol version"},
		{"plaintext", insecure.NewCredentials(), ""},
		{"another host", credentials.NewTLS(config(site.Sign(t, spoilt(func(c *x509.Certificate) {
			c.IPAddresses, c.DNSNames = nil, []string{"n1.example.org"}
		})))), "127.0.0.1"},
		{"for clients only", credentials.NewTLS(config(site.Sign(t, spoilt(func(c *x509.Certificate) {
			c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
		})))), "incompatible key usage"},
	}
	for _, c := range spoiltCertificates {
		servers = append(servers, server{c.name, credentials.NewTLS(config(site.Sign(t, spoilt(c.spoil)))), c.why})
	}
	identity := site.User(t, "alice", 1001)
	for _, s := range servers {
		t.Run(s.name, func(t *testing.T) {
			address := mustServeAs(t, s.creds)
			if err := check(t, address, New(Options{Identity: identity})); err == nil || !strings.Contains(err.Error(), s.why) {
				t.Errorf("asked: %v, want %q", err, s.why)
			}
		})
	}
}

// mustServeAs serves gRPC on TCP with any credentials.
func mustServeAs(t *testing.T, creds credentials.TransportCredentials) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer(grpc.Creds(creds))
	healthv1.RegisterHealthServer(server, health.NewServer())
	done := make(chan error, 1)
	go func() { done <- server.Serve(listener) }()
	t.Cleanup(func() { server.Stop(); <-done })
	return listener.Addr().String()
}

// TestOwnExpired: a client says itself that its certificate has ended; the
// server would only call it bad.
func TestOwnExpired(t *testing.T) {
	site, clock := pkitest.New(t), new(pkitest.Clock)
	s := mustServe(t, "tcp", Options{Identity: site.Node(t, "server")})
	files := site.Issue(t, pki.Request{Name: "n1", Role: attunev1.Role_ROLE_NODE, Valid: time.Hour})
	identity := pkitest.OpenAt(t, files, clock)
	clock.Set(time.Until(identity.Leaf().NotAfter) + time.Second)
	if _, err := call(t, s, Options{Identity: identity}); err == nil || !strings.Contains(err.Error(), "attune cert issue --replace") {
		t.Errorf("%v", err)
	}
	if _, err := pki.OpenAt(files, nil, clock.Now); !errors.Is(err, pki.ErrExpired) {
		t.Errorf("opened: %v", err)
	}
}

// TestExpiresMeanwhile: whoever has connected in time asks for nothing any more
// when their time is over, and does not connect again.
func TestExpiresMeanwhile(t *testing.T) {
	site, clock := pkitest.New(t), new(pkitest.Clock)
	s := mustServe(t, "tcp", Options{Identity: site.NodeAt(t, "server", clock)})
	creds := credentials.NewTLS(&tls.Config{
		RootCAs: site.Roots(), Certificates: []tls.Certificate{site.Sign(t, pkitest.Template())},
	})
	conn, err := grpc.NewClient(s.address, grpc.WithTransportCredentials(creds))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	client := healthv1.NewHealthClient(conn)
	if _, err := client.Check(t.Context(), &healthv1.HealthCheckRequest{}); err != nil {
		t.Fatal(err)
	}
	clock.Set(2 * time.Hour)
	_, err = client.Check(t.Context(), &healthv1.HealthCheckRequest{})
	if err == nil || !strings.Contains(err.Error(), "has expired since it connected") {
		t.Errorf("on the connection that was there: %v", err)
	}
	if err := check(t, s.address, creds); err == nil {
		t.Error("on a new connection it was served")
	}
	if err := patience.Receive(t, "refusal", s.refused); !strings.Contains(err.Error(), "expired or is not yet valid") {
		t.Errorf("refused: %v", err)
	}
}

// TestSilent: who connects and says nothing is cut off.
func TestSilent(t *testing.T) {
	site := pkitest.New(t)
	for name, says := range map[string]string{"nothing": "", "half a record": "\x16\x03\x01"} {
		t.Run(name, func(t *testing.T) {
			listener, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			server := grpc.NewServer(grpc.Creds(New(Options{Identity: site.Node(t, "server")})), grpc.ConnectionTimeout(50*time.Millisecond))
			done := make(chan error, 1)
			go func() { done <- server.Serve(listener) }()
			defer func() { server.Stop(); <-done }()
			conn, err := net.Dial("tcp", listener.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			// What comes after the end is answered by a reset, which is one too.
			if _, err := io.WriteString(conn, says); err != nil && !cutOff(err) {
				t.Fatal(err)
			}
			if _, err := io.Copy(io.Discard, conn); err != nil && !cutOff(err) {
				t.Error(err)
			}
		})
	}
}

func cutOff(err error) bool { return errors.Is(err, unix.ECONNRESET) || errors.Is(err, unix.EPIPE) }

// TestNoTickets: a session is not taken up again, which would outlive the
// certificate.
func TestNoTickets(t *testing.T) {
	site := pkitest.New(t)
	s := mustServe(t, "tcp", Options{Identity: site.Node(t, "server")})
	config := &tls.Config{
		RootCAs: site.Roots(), Certificates: []tls.Certificate{site.Sign(t, pkitest.Template())},
		ClientSessionCache: tls.NewLRUClientSessionCache(4), NextProtos: []string{"h2"},
	}
	for range 2 {
		conn, err := tls.Dial("tcp", s.address, config)
		if err != nil {
			t.Fatal(err)
		}
		preface := make([]byte, 1) // a ticket would come before
		if _, err := io.WriteString(conn, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00"); err != nil {
			t.Fatal(err)
		}
		if _, err := conn.Read(preface); err != nil {
			t.Fatal(err)
		}
		if conn.ConnectionState().DidResume {
			t.Error("the session was taken up again")
		}
		conn.Close()
	}
}

// serial is that of the certificate which a server shows now.
func serial(t *testing.T, s *service, identity *pki.Identity) string {
	t.Helper()
	config := identity.ClientConfig()
	config.NextProtos = []string{"h2"}
	conn, err := tls.Dial("tcp", s.address, config)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	return conn.ConnectionState().PeerCertificates[0].SerialNumber.String()
}

// TestReplaced: a service shows its new certificate to new connections, and goes
// on with those it has.
func TestReplaced(t *testing.T) {
	site := pkitest.New(t)
	request := pki.Request{Name: "server", Role: attunev1.Role_ROLE_NODE, Hosts: []string{"127.0.0.1"}}
	s := mustServe(t, "tcp", Options{Identity: pkitest.Open(t, site.Issue(t, request))})
	identity := site.User(t, "alice", 1001)
	conn, err := grpc.NewClient(s.address, grpc.WithTransportCredentials(New(Options{Identity: identity})))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	ask := func(ctx context.Context) error {
		_, err := healthv1.NewHealthClient(conn).Check(ctx, &healthv1.HealthCheckRequest{})
		<-s.asked
		return err
	}
	if err := ask(t.Context()); err != nil {
		t.Fatal(err)
	}
	before := serial(t, s, identity)
	if again := serial(t, s, identity); again != before {
		t.Fatalf("%s, then %s: nothing was replaced", before, again)
	}
	site.Issue(t, request)
	if after := serial(t, s, identity); after == before {
		t.Error("the old certificate is shown")
	}
	if err := ask(t.Context()); err != nil {
		t.Errorf("the connection that was there: %v", err)
	}
}
