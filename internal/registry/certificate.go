// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"time"

	"github.com/attune-hpc/attune/internal/beat"
)

// A server closes a connection when the certificate that it was made with ends. So a
// connection is made again before, when the certificate was replaced.

const (
	// looks is how often in a certificate's time it is looked for another one: it is
	// replaced when a quarter is left (package renew), or more.
	looks = 96
	// leastLook and mostLook bound the time between.
	leastLook = 100 * time.Millisecond
	mostLook  = time.Hour
)

// shown is the certificate by which a connection was made.
type shown struct {
	leaf     atomic.Pointer[x509.Certificate] // nil: none was yet
	renewing atomic.Bool                      // the connection is closed for another one
	// server is what the last handshake has shown; nil: there was none yet.
	server atomic.Pointer[tls.ConnectionState]
}

// secured says whether connections are made by a certificate.
func (o Options) secured() bool { return o.Identity != nil && !strings.HasPrefix(o.URL, unixScheme) }

// present is the certificate for a connection that is being made.
func (c *conn) present() (tls.Certificate, error) {
	certificate, err := c.options.Identity.Certificate()
	if err == nil {
		c.shown.leaf.Store(certificate.Leaf)
	}
	return certificate, err
}

// verify is verifyServer, and keeps what it was asked about.
func (c *conn) verify(state tls.ConnectionState) error {
	err := c.options.verifyServer(state)
	if err == nil {
		c.shown.server.Store(&state)
	}
	return err
}

// followCertificate makes the connection again when there is another certificate than
// the one it was made by. Requests that are under way are made once more.
func (c *conn) followCertificate(ctx context.Context) {
	for {
		now := c.options.Identity.Leaf()
		every := min(max(now.NotAfter.Sub(now.NotBefore)/looks, leastLook), mostLook)
		if !beat.Pause(ctx, every/2+rand.N(every)) { // the nodes of a site not at one moment
			return
		}
		c.shown.renewing.Store(false) // what was closed then has been told of
		if leaf := c.shown.leaf.Load(); leaf == nil || leaf.Equal(c.options.Identity.Leaf()) || !c.nats.IsConnected() {
			continue
		}
		c.shown.renewing.Store(true)
		if err := c.nats.ForceReconnect(); err != nil {
			c.log.Warn("registry is not connected again by the certificate that is there now", "error", err)
		}
	}
}
