// SPDX-License-Identifier: Apache-2.0

//go:build full

package embed_test

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"github.com/attune-hpc/attune/internal/issuer"
	"github.com/attune-hpc/attune/internal/pki"
	"github.com/attune-hpc/attune/internal/registry/embed"
	"github.com/attune-hpc/attune/internal/renew"
	"github.com/attune-hpc/attune/internal/testing/patience"
	"github.com/attune-hpc/attune/internal/testing/pkitest"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

const life = 20 * time.Second

// keeper renews certificates of a site.
type keeper struct {
	site   *pkitest.Site
	issuer *issuer.Service
}

func newKeeper(t *testing.T) *keeper {
	t.Helper()
	k := &keeper{site: pkitest.New(t)}
	ca := k.site.Issuer(t)
	k.issuer = issuer.New(issuer.Options{Authority: func() (*pki.Authority, error) { return ca, nil }, Valid: life})
	return k
}

// node is an identity that is renewed until the test ends.
func (k *keeper) node(t *testing.T, name string) *pki.Identity {
	t.Helper()
	identity := pkitest.Open(t, k.site.Issue(t, pki.Request{Name: name, Role: attunev1.Role_ROLE_ANALYZER, Hosts: []string{"127.0.0.1"}, Valid: life}))
	r, err := renew.New(renew.Options{Identity: identity, Ask: func(_ context.Context, request []byte) ([]byte, error) {
		return k.issuer.Issue(identity.Leaf(), request)
	}})
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() { defer close(done); r.Run(t.Context()) }()
	t.Cleanup(func() { <-done })
	return identity
}

// mustLive waits until a certificate and so many lives more have ended. There is one
// that holds at each moment.
func mustLive(t *testing.T, identity *pki.Identity, more int) {
	t.Helper()
	for first := identity.Leaf(); time.Since(first.NotAfter) < time.Duration(more)*life; time.Sleep(life / 10) {
		if _, err := identity.Certificate(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestThreeLifetimes: certificates of server and client are renewed, each connection
// ends with its certificate, and for three lives of one no request fails and nothing is
// lost. The server's deadlines are of the machine's clock, so it takes that long.
func TestThreeLifetimes(t *testing.T) {
	k := newKeeper(t)
	server := mustStart(t, embed.Options{Listen: "127.0.0.1:0", Identity: k.node(t, "server")})
	identity := k.node(t, "node")
	client := mustBeBusy(t, server.URL(), identity)
	mustLive(t, identity, 2)
	client.mustHaveLasted(t)
	if n := client.said("by the certificate that is there now"); n < 3 {
		t.Errorf("connected again %d times: %s", n, &client.log)
	}
}

// TestRegistryOfAnotherSite: the connection between two registries ends with the
// certificate that it was made by, and is there again by the next one; clients notice
// nothing but a pause.
func TestRegistryOfAnotherSite(t *testing.T) {
	k := newKeeper(t)
	hub := mustStart(t, embed.Options{Listen: "127.0.0.1:0", LeafListen: "127.0.0.1:0", Identity: k.node(t, "hub")})
	identity := k.node(t, "site")
	site := mustStart(t, embed.Options{Socket: filepath.Join(t.TempDir(), "socket"), Remotes: []string{"tls://" + hub.LeafAddr()}, Identity: identity})
	client := mustBeBusy(t, site.URL(), nil)
	mustLive(t, identity, 1)
	patience.Until(t, "the other site", func() bool { return site.Healthy() == nil })
	client.mustHaveLasted(t)
}
