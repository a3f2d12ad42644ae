// SPDX-License-Identifier: Apache-2.0

package renew

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"log/slog"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/attune-hpc/attune/internal/issuer"
	"github.com/attune-hpc/attune/internal/pki"
	"github.com/attune-hpc/attune/internal/testing/leaktest"
	"github.com/attune-hpc/attune/internal/testing/pkitest"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

// week is how long certificates of these tests hold.
const week = 7 * 24 * time.Hour

// node is an identity of a site whose certificates hold for a week, and who renews it.
type node struct {
	site     *pkitest.Site
	files    pki.Files
	identity *pki.Identity
	issuer   *issuer.Service
	log      bytes.Buffer
}

func newNode(t *testing.T) *node {
	t.Helper()
	n := &node{site: pkitest.New(t)}
	ca := n.site.Issuer(t)
	n.issuer = issuer.New(issuer.Options{Authority: func() (*pki.Authority, error) { return ca, nil }, Valid: week})
	n.files = n.site.Issue(t, pki.Request{Name: "n1", Role: attunev1.Role_ROLE_NODE, Hosts: []string{"n1", "10.0.0.1"}, Valid: week})
	n.identity = pkitest.Open(t, n.files)
	return n
}

// ask is the issuing service without a network: time stands still while one is waited
// for.
func (n *node) ask(_ context.Context, request []byte) ([]byte, error) {
	if _, err := n.identity.Certificate(); err != nil {
		return nil, err // no connection is made with it
	}
	return n.issuer.Issue(n.identity.Leaf(), request)
}

// start runs a renewer until stop is called.
func (n *node) start(t *testing.T, ask Ask) (stop func()) {
	t.Helper()
	r, err := New(Options{Identity: n.identity, Ask: ask, Log: slog.New(slog.NewTextHandler(&n.log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); r.Run(ctx) }()
	return func() { cancel(); <-done }
}

// TestThreeLifetimes: there is a certificate that holds at each moment, and each is
// replaced when a third of its time is left.
func TestThreeLifetimes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNode(t)
		defer n.start(t, n.ask)()
		before, replaced := n.identity.Leaf(), 0
		for began := time.Now(); time.Since(began) < 3*week; time.Sleep(time.Minute) {
			if _, err := n.identity.Certificate(); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			now := n.identity.Leaf()
			if now.Equal(before) {
				continue
			}
			left := time.Until(before.NotAfter)
			if third := week / 3; left > third+2*time.Minute || left < third-week/24 {
				t.Errorf("replaced when %v was left, of %v", left, week)
			}
			if bytes.Equal(now.RawSubjectPublicKeyInfo, before.RawSubjectPublicKeyInfo) {
				t.Error("the key is the same")
			}
			before, replaced = now, replaced+1
		}
		if replaced != 4 { // each after some 0.68 of a week
			t.Errorf("replaced %d times", replaced)
		}
		if n.log.Len() > 0 {
			t.Errorf("log: %s", &n.log)
		}
		if _, err := pki.Open(n.files, nil); err != nil {
			t.Errorf("the files: %v", err)
		}
	})
}

// TestIssuerIsAway: a renewer asks on, seldom, tells the log once a day, and has the
// next certificate when the service is back.
func TestIssuerIsAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNode(t)
		var asked atomic.Int32
		var back atomic.Bool
		defer n.start(t, func(ctx context.Context, request []byte) ([]byte, error) {
			if asked.Add(1); !back.Load() {
				return nil, errors.New("nobody is there")
			}
			return n.ask(ctx, request)
		})()
		first := n.identity.Leaf()
		time.Sleep(week - 20*time.Hour) // 29 to 36 hours after the first attempt
		synctest.Wait()
		if lines := strings.Count(n.log.String(), "\n"); lines != 2 || !strings.Contains(n.log.String(), "nobody is there") {
			t.Errorf("%d lines: %s", lines, &n.log)
		}
		if n := asked.Load(); n < 8 || n > 40 {
			t.Errorf("asked %d times", n)
		}
		back.Store(true)
		time.Sleep(week / 24)
		synctest.Wait()
		if n.identity.Leaf().Equal(first) {
			t.Error("not renewed")
		}
	})
}

// TestReplacedByHand: a certificate that somebody has put there is not renewed before
// it is time for that one.
func TestReplacedByHand(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNode(t)
		var asked atomic.Int32
		defer n.start(t, func(ctx context.Context, request []byte) ([]byte, error) {
			asked.Add(1)
			return n.ask(ctx, request)
		})()
		time.Sleep(week / 2)
		n.site.Issue(t, pki.Request{Name: "n1", Role: attunev1.Role_ROLE_NODE, Hosts: []string{"n1", "10.0.0.1"}, Valid: week})
		time.Sleep(week / 2)
		synctest.Wait()
		if n := asked.Load(); n != 0 {
			t.Errorf("asked %d times", n)
		}
	})
}

// TestHostileAnswers: whatever a CA, or who pretends to be one, answers, what is there
// stays unless it is the same for the own key.
func TestHostileAnswers(t *testing.T) {
	n := newNode(t)
	ca, stranger := n.site.Issuer(t), pkitest.New(t).Issuer(t)
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	foreign, err := x509.CreateCertificateRequest(rand.Reader, new(x509.CertificateRequest), key)
	if err != nil {
		t.Fatal(err)
	}
	spoilt := func(spoil func(*x509.Certificate)) Ask {
		return func(_ context.Context, request []byte) ([]byte, error) {
			earlier := *n.identity.Leaf()
			spoil(&earlier)
			chain, _, err := ca.Reissue(&earlier, request, week)
			return chain, err
		}
	}
	reissued := func(by *pki.Authority, valid time.Duration) Ask {
		return func(_ context.Context, request []byte) ([]byte, error) {
			chain, _, err := by.Reissue(n.identity.Leaf(), request, valid)
			return chain, err
		}
	}
	says := func(text string) Ask {
		return func(context.Context, []byte) ([]byte, error) { return []byte(text), nil }
	}
	for _, row := range []struct {
		name string
		ask  Ask
		why  string
	}{
		{"another name", spoilt(func(c *x509.Certificate) { c.Subject.CommonName = "n2" }), "another common name"},
		{"another role", spoilt(func(c *x509.Certificate) { c.URIs = mustUser(t, n.site).URIs }), "another role"},
		{"another host", spoilt(func(c *x509.Certificate) { c.DNSNames = append(c.DNSNames, "n2") }), "another list of host names"},
		{"no address", spoilt(func(c *x509.Certificate) { c.IPAddresses = nil }), "another list of addresses"},
		{"not for servers", spoilt(func(c *x509.Certificate) { c.ExtKeyUsage = c.ExtKeyUsage[:1] }), "another list of usages"},
		{"another CA", reissued(stranger, week), "is not of the CA"},
		{"expired", reissued(ca, -time.Minute), "expired"},
		{"another key", func(context.Context, []byte) ([]byte, error) {
			chain, _, err := ca.Reissue(n.identity.Leaf(), foreign, week)
			return chain, err
		}, "private key does not match"},
		{"the old one", func(context.Context, []byte) ([]byte, error) { return os.ReadFile(n.files.Cert) }, "private key does not match"},
		{"a key", func(context.Context, []byte) ([]byte, error) { return os.ReadFile(n.files.Key) }, "besides certificates"},
		{"nothing", says(""), "not a list of PEM certificates"},
		{"garbage", says("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"), "malformed"},
	} {
		t.Run(row.name, func(t *testing.T) {
			before := read(t, n.files)
			r, err := New(Options{Identity: n.identity, Ask: row.ask})
			if err != nil {
				t.Fatal(err)
			}
			if err := r.Once(t.Context()); err == nil || !strings.Contains(err.Error(), row.why) {
				t.Errorf("%v, want %q", err, row.why)
			}
			if read(t, n.files) != before {
				t.Error("the files were changed")
			}
		})
	}
	r, err := New(Options{Identity: n.identity, Ask: n.ask})
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Once(t.Context()); err != nil { // or the others would prove nothing
		t.Error(err)
	}
}

// mustUser is a user's certificate.
func mustUser(t *testing.T, site *pkitest.Site) *x509.Certificate {
	t.Helper()
	return site.User(t, "alice", 1001).Leaf()
}

func read(t *testing.T, files pki.Files) [2]string {
	t.Helper()
	var out [2]string
	for n, path := range []string{files.Cert, files.Key} {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		out[n] = string(data)
	}
	return out
}

// TestChainIsWritten: those between the certificate and the root are in the file.
func TestChainIsWritten(t *testing.T) {
	n := newNode(t)
	r, err := New(Options{Identity: n.identity, Ask: n.ask})
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Once(t.Context()); err != nil {
		t.Fatal(err)
	}
	rest, blocks := []byte(read(t, n.files)[0]), 0
	for {
		block, more := pem.Decode(rest)
		if block == nil {
			break
		}
		rest, blocks = more, blocks+1
	}
	if blocks != 2 {
		t.Errorf("%d certificates in the file, want the node's and the issuing CA's", blocks)
	}
}

// TestNotOnesOwn: a process does not begin what it cannot finish.
func TestNotOnesOwn(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can give a key away")
	}
	n := newNode(t)
	if err := os.Chown(n.files.Key, 4242, -1); err != nil {
		t.Fatal(err)
	}
	if _, err := New(Options{Identity: n.identity}); err == nil || !strings.Contains(err.Error(), "user 4242") {
		t.Errorf("error %v", err)
	}
}

func TestNothingToRenew(t *testing.T) {
	if _, err := New(Options{}); err == nil {
		t.Error("nothing can be renewed")
	}
}
