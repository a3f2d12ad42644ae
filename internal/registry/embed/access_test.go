// SPDX-License-Identifier: Apache-2.0

package embed_test

import (
	"bufio"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/attune-hpc/attune/internal/pki"
	"github.com/attune-hpc/attune/internal/registry"
	"github.com/attune-hpc/attune/internal/registry/embed"
	"github.com/attune-hpc/attune/internal/testing/patience"
	"github.com/attune-hpc/attune/internal/testing/pkitest"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// mustServe starts a server in the network, with an Analyzer at it.
func mustServe(t *testing.T, site *pkitest.Site) (url string, service *registry.Client) {
	t.Helper()
	identity := site.Analyzer(t, "server")
	server := mustStart(t, embed.Options{Listen: "127.0.0.1:0", Identity: identity})
	service = mustOpen(t, server.URL(), identity)
	mustPut(t, service, "solver")
	if _, err := service.Announce(t.Context(), &attunev1.AnalyzerRecord{Id: "analyzer"}, nil); err != nil {
		t.Fatal(err)
	}
	patience.Until(t, "the Analyzer to be announced", func() bool {
		_, err := registry.FindAnalyzers(patience.Context(t), registry.Options{URL: server.URL(), Identity: identity})
		if err != nil && !errors.Is(err, registry.ErrNoAnalyzer) {
			t.Fatal(err)
		}
		return err == nil
	})
	return server.URL(), service
}

// mustDial connects as a person with a NATS client of their own would.
func mustDial(t *testing.T, url string, identity *pki.Identity) (conn *nats.Conn, refused <-chan error) {
	t.Helper()
	errs := make(chan error, 16)
	conn, err := nats.Connect(url, nats.Timeout(patience.Limit), nats.Secure(&tls.Config{MinVersion: tls.VersionTLS13}),
		nats.ClientTLSConfig(identity.Certificate, identity.Roots),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { errs <- err }))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	return conn, errs
}

// Persons may ask which Analyzers there are, and nothing else.
func TestPersons(t *testing.T) {
	site := pkitest.New(t)
	url, service := mustServe(t, site)
	user := site.User(t, "user", 1000)
	admin := pkitest.Open(t, site.Issue(t, pki.Request{Name: "admin", Role: attunev1.Role_ROLE_ADMIN}))
	for _, person := range []*pki.Identity{user, admin} {
		t.Run(person.Leaf().Subject.CommonName, func(t *testing.T) {
			var found []*attunev1.AnalyzerRecord
			var err error
			patience.Until(t, "the Analyzer's answer", func() bool {
				found, err = registry.FindAnalyzers(patience.Context(t), registry.Options{URL: url, Identity: person})
				return !errors.Is(err, registry.ErrNoAnalyzer)
			})
			if err != nil || len(found) != 1 || found[0].GetId() != "analyzer" {
				t.Errorf("found %v, %v", found, err)
			}
			conn, refused := mustDial(t, url, person)
			mustDeny(t, conn, refused, []string{
				"$KV.attune_orders.registration.solver", "$KV.attune_analyzers.analyzer",
				"$JS.API.STREAM.DELETE.KV_attune_orders", "$JS.API.STREAM.INFO.KV_attune_orders",
				"attune.changes.attune_orders.registration.solver", "attune.locate", "attune.inbox.x", "_INBOX.x", "$SYS.REQ.SERVER.PING",
			}, []string{">", "attune.>", "attune.inbox.>", "attune.changes.>", "$KV.>", "$SYS.>", "attune.analyzers"})
		})
	}
	list, err := service.Registrations(patience.Context(t))
	if err != nil || len(list) != 1 || list[0].GetId() != "solver" {
		t.Errorf("registrations: %v, %v", list, err)
	}
}

// mustDeny sees that a connection can neither publish to the subjects publish nor listen to
// the subjects listen.
func mustDeny(t *testing.T, conn *nats.Conn, refused <-chan error, publish, listen []string) {
	t.Helper()
	for _, subject := range publish {
		mustBeRefused(t, refused, "publish to "+subject, func() error {
			return errors.Join(conn.Publish(subject, []byte("x")), conn.Flush())
		})
	}
	for _, subject := range listen {
		mustBeRefused(t, refused, "listen to "+subject, func() error {
			_, err := conn.SubscribeSync(subject)
			return errors.Join(err, conn.Flush())
		})
	}
}

func mustBeRefused(t *testing.T, refused <-chan error, what string, try func() error) {
	t.Helper()
	if err := try(); err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	select {
	case err := <-refused:
		if !errors.Is(err, nats.ErrPermissionViolation) {
			t.Errorf("%s: %v, want %v", what, err, nats.ErrPermissionViolation)
		}
	case <-time.After(patience.Limit):
		t.Errorf("%s: allowed", what)
	}
}

// Whoever asks names where the answer goes. An Analyzer must not be made to
// write there what the one who asks may not.
func TestAnswersGoToInboxesOnly(t *testing.T) {
	site := pkitest.New(t)
	url, service := mustServe(t, site)
	conn, _ := mustDial(t, url, site.User(t, "user", 1000))
	for _, reply := range []string{"$KV.attune_orders.registration.evil", "$JS.API.STREAM.PURGE.KV_attune_orders", "attune.locate"} {
		if err := conn.PublishRequest(registry.SubjectAnalyzers, reply, nil); err != nil {
			t.Fatal(err)
		}
	}
	// A question behind them is answered: so they have been dealt with.
	if _, err := conn.Request(registry.SubjectAnalyzers, nil, patience.Limit); err != nil {
		t.Fatal(err)
	}
	list, err := service.Registrations(patience.Context(t))
	if err != nil || len(list) != 1 || list[0].GetId() != "solver" {
		t.Errorf("registrations: %v, %v", list, err)
	}
}

// Analyzers may not delete a bucket, nor say that something has changed.
func TestAnalyzers(t *testing.T) {
	site := pkitest.New(t)
	url, service := mustServe(t, site)
	conn, refused := mustDial(t, url, site.Analyzer(t, "other"))
	mustDeny(t, conn, refused, []string{
		"$JS.API.STREAM.DELETE.KV_attune_orders", "$JS.API.STREAM.CREATE.mine",
		"attune.changes.attune_orders.registration.solver", "$SYS.REQ.SERVER.PING",
	}, nil)
	mustSee(t, service, "solver")
}

func TestStrangers(t *testing.T) {
	site := pkitest.New(t)
	url, _ := mustServe(t, site)
	roots := site.User(t, "user", 1000).Roots
	for _, row := range []struct {
		name    string
		url     string
		options []nats.Option
	}{
		{"without certificate", url, []nats.Option{nats.Secure(), nats.ClientTLSConfig(nil, roots)}},
		{"of another CA", url, []nats.Option{nats.Secure(), nats.ClientTLSConfig(pkitest.New(t).Node(t, "node").Certificate, roots)}},
		{"with a password", url, []nats.Option{nats.Secure(), nats.ClientTLSConfig(nil, roots), nats.UserInfo("a", "b")}},
	} {
		t.Run(row.name, func(t *testing.T) {
			conn, err := nats.Connect(row.url, append(row.options, nats.NoReconnect())...)
			if err == nil {
				// TLS 1.3: the client is done before its certificate is looked at.
				err = conn.FlushTimeout(patience.Limit)
				conn.Close()
			}
			if err == nil {
				t.Error("let in")
			}
		})
	}
}

// Who speaks without TLS is not heard, whatever the library of clients would do.
func TestPlainText(t *testing.T) {
	url, _ := mustServe(t, pkitest.New(t))
	conn, err := net.Dial("tcp", strings.TrimPrefix(url, "tls://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(patience.Limit)); err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(conn, "CONNECT {\"verbose\":true}\r\nPING\r\n"); err != nil {
		t.Fatal(err)
	}
	said, err := io.ReadAll(conn)
	if errors.Is(err, os.ErrDeadlineExceeded) || !strings.HasPrefix(string(said), "INFO ") || strings.Contains(string(said), "PONG") || strings.Contains(string(said), "+OK") {
		t.Errorf("the server says %q, %v; want its greeting and the end", said, err)
	}
}

// A server must not be a person, or a node, that pretends to be one.
func TestServerOfAnother(t *testing.T) {
	site := pkitest.New(t)
	for _, role := range []attunev1.Role{attunev1.Role_ROLE_ADMIN, attunev1.Role_ROLE_NODE} {
		server := mustStart(t, embed.Options{Listen: "127.0.0.1:0", Identity: pkitest.Open(t, site.Issue(t, pki.Request{
			Name: "mallory" + role.String(), Role: role, Hosts: []string{"127.0.0.1"},
		}))})
		_, err := registry.FindAnalyzers(patience.Context(t), registry.Options{URL: server.URL(), Identity: site.User(t, "user", 1000)})
		if err == nil || !strings.Contains(err.Error(), "role analyzer") {
			t.Errorf("%v: error %v, want one about the role", role, err)
		}
	}
}

// A certificate that ends ends the connection. The server's clock is behind here,
// so that the handshake takes what has ended a minute ago.
func TestCertificateEnds(t *testing.T) {
	site, clock, handshake := pkitest.New(t), new(pkitest.Clock), listenFor(t, "handshake error")
	clock.Set(-4 * time.Minute)
	server := mustStart(t, embed.Options{
		Listen: "127.0.0.1:0", Identity: site.AnalyzerAt(t, "server", clock), Log: handshake.log(),
	})
	ended := pkitest.Template()
	ended.NotBefore, ended.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(-time.Minute)
	certificate := site.Sign(t, ended)
	closed := make(chan struct{})
	conn, err := nats.Connect(server.URL(), nats.NoReconnect(), nats.Timeout(patience.Limit), nats.Secure(&tls.Config{MinVersion: tls.VersionTLS13}),
		nats.ClientTLSConfig(func() (tls.Certificate, error) { return certificate, nil }, site.User(t, "user", 1000).Roots),
		nats.ClosedHandler(func(*nats.Conn) { close(closed) }))
	if err == nil { // else it has ended before it was used
		defer conn.Close()
		patience.Closed(t, "end of the connection", closed)
	}
	select {
	case <-handshake.seen:
		t.Error("the handshake has refused the certificate")
	default:
	}
}

func TestSocketWantsConnect(t *testing.T) {
	path := filepath.Join(t.TempDir(), "socket")
	mustStart(t, embed.Options{Socket: path})
	for _, row := range []struct{ name, first string }{
		{"ping", "PING\r\n"},
		{"no options", "CONNECT\r\n"},
		{"options are no object", "CONNECT null\r\n"},
		{"options are no JSON", "CONNECT {\r\n"},
		{"no end of line", strings.Repeat("x", 1<<17)},
	} {
		t.Run(row.name, func(t *testing.T) {
			conn, err := net.Dial("unix", path)
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			fmt.Fprint(conn, row.first)
			said := bufio.NewScanner(conn)
			for said.Scan() {
				if line := said.Text(); !strings.HasPrefix(line, "INFO ") && !strings.HasPrefix(line, "-ERR") {
					t.Errorf("answer %q", line)
				}
			}
		})
	}
	// Credentials of the peer's own choice are worth nothing, and do no harm.
	conn, err := net.Dial("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprint(conn, `CONNECT {"verbose":true,"user":"x","pass":"y","auth_token":"z","jwt":"j"}`+"\r\n")
	for said := bufio.NewScanner(conn); said.Scan(); {
		switch line := said.Text(); {
		case line == "+OK":
			return
		case strings.HasPrefix(line, "-ERR"):
			t.Fatal(line)
		}
	}
	t.Error("the connection was closed without a word")
}
