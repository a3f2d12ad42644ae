// SPDX-License-Identifier: Apache-2.0

package renew

import (
	"cmp"
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"time"

	"google.golang.org/grpc"

	"github.com/attune-hpc/attune/internal/authn"
	"github.com/attune-hpc/attune/internal/beat"
	"github.com/attune-hpc/attune/internal/pki"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

const (
	// patience bounds one attempt.
	patience = 30 * time.Second
	// glance is the longest time between two looks at the certificate: somebody may
	// replace it by hand.
	glance = time.Hour
	// reminder is how often the log is told of failures.
	reminder = 24 * time.Hour
	// soonest is the shortest pause after a failure.
	soonest = time.Second
)

// Ask asks a CA for a certificate to the key of a request (PKCS #10 in DER) that says
// what one's own says. The answer is certificates in PEM, one's own first.
type Ask func(ctx context.Context, request []byte) (answer []byte, err error)

// Options say what is renewed, and by whom.
type Options struct {
	// Identity is the certificate. Its clock says when it is time.
	Identity *pki.Identity
	// Ask asks for the next one.
	Ask Ask
	// Log is told of failures, once a day. Nil: nobody is.
	Log *slog.Logger
}

// Renewer renews a certificate.
type Renewer struct {
	options Options
	log     *slog.Logger
}

// New returns a Renewer. The error says why this process cannot renew the certificate.
func New(o Options) (*Renewer, error) {
	if err := o.Identity.Renewable(); err != nil {
		return nil, err
	}
	o.Log = cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	return &Renewer{options: o, log: o.Log.With("component", "renew")}, nil
}

// Once renews the certificate now.
func (r *Renewer) Once(ctx context.Context) error {
	renewal, err := pki.NewRenewal()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	answer, err := r.options.Ask(ctx, renewal.Request())
	if err != nil {
		return fmt.Errorf("ask for a certificate: %w", err)
	}
	return r.options.Identity.Renew(renewal, answer)
}

// Run renews the certificate whenever it is time, until ctx ends.
func (r *Renewer) Run(ctx context.Context) {
	var plan plan
	for failed := 0; ; {
		now := r.options.Identity.Now()
		plan.follow(r.options.Identity.Leaf())
		if wait := plan.due.Sub(now); wait > 0 {
			failed = 0
			if !beat.Pause(ctx, min(wait, glance)) {
				return
			}
			continue
		}
		err := r.Once(ctx)
		if err != nil && ctx.Err() == nil && now.Sub(plan.told) >= reminder {
			plan.told = now
			r.log.Error("certificate is not renewed; trying again", "expires", plan.leaf.NotAfter, "error", err)
		}
		if err == nil {
			plan.told = time.Time{}
		}
		// Also after a success: it may be due at once, by a clock that is wrong.
		if !beat.Pause(ctx, plan.backOff(failed)) {
			return
		}
		failed++
	}
}

// plan is when a certificate is to be renewed.
type plan struct {
	leaf *x509.Certificate
	due  time.Time
	told time.Time // when the log was told last that it fails
}

// follow makes a plan for a certificate, unless there is one. It is time when a third
// of the certificate's time is left, or later by up to a 24th of it: the nodes of a site,
// which got theirs on one day, do not all ask at once.
func (p *plan) follow(leaf *x509.Certificate) {
	if p.leaf != nil && p.leaf.Equal(leaf) {
		return
	}
	p.leaf = leaf
	p.due = leaf.NotAfter.Add(rand.N(life(leaf)/24+1) - life(leaf)/3)
}

// backOff is the pause after so many failures and one more: from a thousandth of the
// certificate's time to a 48th, half of it by chance.
func (p *plan) backOff(failed int) time.Duration {
	longest := life(p.leaf) / 48
	wait := longest
	if failed < 6 { // else it is more
		wait = min(life(p.leaf)/1000<<failed, longest)
	}
	wait = max(wait, soonest)
	return wait/2 + rand.N(wait/2+1)
}

func life(c *x509.Certificate) time.Duration { return c.NotAfter.Sub(c.NotBefore) }

// Check says why an issuing service at an address, HOST:PORT, cannot be asked to renew
// certificates in files by this process.
func Check(address string, files pki.Files) error {
	if _, _, err := net.SplitHostPort(address); err != nil {
		return fmt.Errorf("issuing service %q: want HOST:PORT: %w", address, err)
	}
	return files.Renewable()
}

// maxAnswer bounds an answer, bytes.
const maxAnswer = 64 << 10

// ByService returns a Renewer that asks the issuing service at an address, HOST:PORT.
func ByService(address string, identity *pki.Identity, log *slog.Logger) (*Renewer, error) {
	return New(Options{Identity: identity, Ask: service(address, identity), Log: log})
}

// service asks a service by the identity whose certificate is to be renewed. The service
// has to have the role node.
func service(address string, identity *pki.Identity) Ask {
	creds := authn.New(authn.Options{Identity: identity, Admit: isService})
	return func(ctx context.Context, request []byte) (answer []byte, err error) {
		conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(creds), grpc.WithDisableServiceConfig(),
			grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxAnswer)))
		if err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, conn.Close()) }()
		got, err := attunev1.NewCertificateServiceClient(conn).Renew(ctx, &attunev1.RenewRequest{CertificateRequest: request})
		return got.GetCertificates(), err
	}
}

func isService(p *attunev1.Principal) error {
	if p.GetRole() == attunev1.Role_ROLE_NODE {
		return nil
	}
	return fmt.Errorf("%w: %s has not the role node: it is no service of this site", authn.ErrNotAdmitted, p.GetName())
}
