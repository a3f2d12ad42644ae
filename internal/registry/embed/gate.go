// SPDX-License-Identifier: Apache-2.0

package embed

import (
	"crypto/rand"
	"errors"
	"os"
	"sync"
	"time"

	nats "github.com/nats-io/nats-server/v2/server"

	"github.com/attune-hpc/attune/internal/authn"
	"github.com/attune-hpc/attune/internal/peercred"
	"github.com/attune-hpc/attune/internal/pki"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// gate says who may connect, and what they may do then. It is for many
// goroutines.
type gate struct {
	account *nats.Account

	mu sync.Mutex
	// admitted are those that came through the Unix socket, by a secret of
	// their connection that they never see.
	admitted map[string]*attunev1.Principal
}

func newGate() *gate { return &gate{admitted: make(map[string]*attunev1.Principal)} }

// Check implements nats.Authentication: it is asked for each connection.
func (g *gate) Check(c nats.ClientAuthentication) bool {
	principal, until, err := g.principal(c)
	if err != nil || principal == nil {
		return false
	}
	user := &nats.User{Username: principal.GetName(), Account: g.account, ConnectionDeadline: until}
	switch analyzer := principal.GetRole() == attunev1.Role_ROLE_ANALYZER; c.Kind() {
	case nats.LEAF:
		if !analyzer {
			return false
		}
		// No permissions: its own server has checked each client.
	case nats.CLIENT:
		user.Permissions = permissions(principal)
	default:
		return false
	}
	c.RegisterUser(user)
	return true
}

// permissions are what somebody may publish and hear.
func permissions(of *attunev1.Principal) *nats.Permissions {
	switch of.GetRole() {
	case attunev1.Role_ROLE_ANALYZER:
		return forAnalyzers()
	case attunev1.Role_ROLE_NODE:
		return forNode(of.GetName())
	}
	return forPersons()
}

// principal returns who connects, and until when that is true; zero: for good.
func (g *gate) principal(c nats.ClientAuthentication) (*attunev1.Principal, time.Time, error) {
	if state := c.GetTLSConnectionState(); state != nil {
		p, err := pki.PrincipalOf(*state)
		if err != nil {
			return nil, time.Time{}, err
		}
		return p, state.PeerCertificates[0].NotAfter, nil
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	p := g.admitted[c.GetOpts().Token]
	if p == nil {
		return nil, time.Time{}, errors.New("neither a certificate nor the Unix socket")
	}
	return p, time.Time{}, nil
}

// admit lets the peer of a Unix socket in, and returns the secret to connect
// with. This process' user is the Analyzer's, root is the node's.
func (g *gate) admit(peer peercred.Peer) (secret string) {
	p := authn.OfUser(uint32(peer.UID))
	if peer.UID == os.Geteuid() {
		p.Role = attunev1.Role_ROLE_ANALYZER
	}
	secret = rand.Text()
	g.mu.Lock()
	defer g.mu.Unlock()
	g.admitted[secret] = p
	return secret
}

// forgetSecret makes it worthless.
func (g *gate) forgetSecret(secret string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.admitted, secret)
}
