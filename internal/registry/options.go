// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/attune-hpc/attune/internal/pki"
	"github.com/attune-hpc/attune/internal/turns"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// DefaultTTL is how long the record of an Analyzer outlives it.
const DefaultTTL = 10 * time.Second

// unixScheme begins the address of a registry on the same host.
const unixScheme = "unix:"

// Options says where the registry is.
type Options struct {
	// URL is where: tls://HOST:PORT, nats://HOST:PORT, or several of one
	// cluster with commas between; unix:/PATH for the socket of a registry that
	// is embedded on the same host.
	URL string
	// Identity is the certificate of this side and the CA that it believes, for
	// connections over the network. Nil: URL is a Unix socket, or on the loopback
	// interface.
	Identity *pki.Identity
	// Name tells this client from others in the server's own tools; empty: the
	// server knows it by its address only.
	Name string
	// TTL is how long the records of Analyzers live, if this client is the
	// first of the site: who comes later takes what is set there. A node tells of
	// itself as often, and Analyzers believe it for three times as long.
	// 0: DefaultTTL.
	TTL time.Duration
	// Turns is told that what the registry says is followed; nil: nobody is.
	Turns *turns.Board
	// Log is told when the connection is lost and when it is back; nil: nobody.
	Log *slog.Logger
}

// Validate returns an error that says what to give instead.
func (o Options) Validate() error {
	if path, ok := strings.CutPrefix(o.URL, unixScheme); ok {
		if !strings.HasPrefix(path, "/") {
			return fmt.Errorf("registry %q: a Unix socket has an absolute path, as in unix:/run/attune/analyzer/registry.sock", o.URL)
		}
		return nil
	}
	if o.URL == "" {
		return errors.New("no registry: give its address, as in tls://HOST:4222")
	}
	for one := range strings.SplitSeq(o.URL, ",") {
		if err := o.validateURL(strings.TrimSpace(one)); err != nil {
			return fmt.Errorf("registry %q: %w", one, err)
		}
	}
	return nil
}

func (o Options) validateURL(text string) error {
	at, err := url.Parse(text)
	if err != nil {
		return err
	}
	if at.Scheme != "nats" && at.Scheme != "tls" {
		return errors.New("an address is tls://HOST:PORT, nats://HOST:PORT or unix:/PATH")
	}
	if at.Hostname() == "" {
		return errors.New("the address has no host")
	}
	if o.Identity == nil && !loopback(at.Hostname()) {
		return errors.New("over the network, a certificate, its key and the site's CA are needed")
	}
	return nil
}

// loopback says whether nothing sent to the host leaves this machine.
func loopback(host string) bool {
	return host == "localhost" || net.ParseIP(host).IsLoopback()
}

// secure makes connections mutual TLS 1.3, with the certificate that own returns at
// that time, to servers that verify takes.
func (o Options) secure(own nats.TLSCertHandler, verify func(tls.ConnectionState) error) []nats.Option {
	return []nats.Option{
		nats.Secure(&tls.Config{MinVersion: tls.VersionTLS13, VerifyConnection: verify}),
		nats.ClientTLSConfig(own, o.Identity.Roots),
	}
}

// verifyServer refuses a server whose certificate is a person's or a node's. One
// that says nothing to Attune is that of a NATS server of the site's. Nor is one
// believed that was revoked.
func (o Options) verifyServer(state tls.ConnectionState) error {
	if err := o.Identity.Verify(state); err != nil {
		return err
	}
	server, err := pki.PrincipalOf(state)
	if errors.Is(err, pki.ErrNoRole) {
		return nil
	}
	if err == nil && server.GetRole() != attunev1.Role_ROLE_ANALYZER {
		return fmt.Errorf("the registry has a certificate of role %s: it needs one of role analyzer", pki.RoleName(server.GetRole()))
	}
	return err
}
