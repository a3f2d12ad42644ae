// SPDX-License-Identifier: Apache-2.0

package pki

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"google.golang.org/protobuf/encoding/protojson"

	"github.com/attune-hpc/attune/internal/outfile"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// ErrRevoked means that a certificate is not to be believed any more.
var ErrRevoked = errors.New("certificate is revoked")

// revocations are the certificates that an [Identity] does not believe any more, and
// the connections that were made with others so far. It is for many goroutines.
type revocations struct {
	mu       sync.Mutex
	path     string // of the file that remembers them; empty: none does
	unsaved  bool   // the file does not have all of them
	list     []*attunev1.Revocation
	bySerial map[string]*attunev1.Revocation
	byName   map[string][]*attunev1.Revocation
	held     map[net.Conn][]*x509.Certificate
	prune    int // how many there are when the closed ones are looked for
}

// sameAs is the same for two entries that name the same.
func sameAs(r *attunev1.Revocation) string {
	return fmt.Sprintf("%s/%s/%d/%d", r.GetSerial(), r.GetName(), r.GetRole(), r.GetBeforeUnix())
}

// SerialOf is a certificate's serial number as a revocation has it.
func SerialOf(c *x509.Certificate) string { return c.SerialNumber.Text(16) }

// ParseSerial is a serial number as people write it, in hexadecimal digits with
// colons or without, as a revocation has it.
func ParseSerial(text string) (string, error) {
	n, ok := new(big.Int).SetString(strings.ReplaceAll(text, ":", ""), 16)
	if !ok || n.Sign() <= 0 || n.BitLen() > 160 {
		return "", fmt.Errorf("%.80q is no serial number of a certificate: want up to 40 hexadecimal digits", text)
	}
	return n.Text(16), nil
}

// add enters what is not there yet, and returns whether there was such.
func (r *revocations) add(list []*attunev1.Revocation, now time.Time) (more bool) {
	known := make(map[string]bool)
	for _, one := range r.list {
		known[sameAs(one)] = true
	}
	for _, one := range list {
		if known[sameAs(one)] || one.GetExpiresUnix() != 0 && one.GetExpiresUnix() < now.Unix() {
			continue
		}
		known[sameAs(one)], more = true, true
		r.list = append(r.list, one)
	}
	if more {
		r.bySerial, r.byName = make(map[string]*attunev1.Revocation), make(map[string][]*attunev1.Revocation)
		for _, one := range r.list {
			if one.GetSerial() != "" {
				r.bySerial[one.GetSerial()] = one
			} else {
				r.byName[one.GetName()] = append(r.byName[one.GetName()], one)
			}
		}
	}
	return more
}

// check returns why one of the certificates is not believed; nil: all are.
func (r *revocations) check(chain []*x509.Certificate) error {
	for _, c := range chain {
		if bytes.Equal(c.RawIssuer, c.RawSubject) {
			continue // the CA: whoever believes it has it in a file
		}
		by := r.bySerial[SerialOf(c)]
		for _, one := range r.byName[c.Subject.CommonName] {
			if c.NotBefore.Unix() < one.GetBeforeUnix() && (one.GetRole() == attunev1.Role_ROLE_UNSPECIFIED || one.GetRole() == roleOf(c)) {
				by = one
			}
		}
		if by != nil {
			return fmt.Errorf("%w: that of %q with serial number %s, by %s: %s",
				ErrRevoked, c.Subject.CommonName, SerialOf(c), by.GetBy(), by.GetReason())
		}
	}
	return nil
}

// roleOf is the role in a certificate.
func roleOf(c *x509.Certificate) attunev1.Role {
	said, err := parseURIs(c.URIs)
	if err != nil {
		return attunev1.Role_ROLE_UNSPECIFIED
	}
	return said.role
}

// Revoke has certificates not be believed from now on: handshakes with them fail,
// and connections that were made with them are closed. What was revoked once stays
// so, whatever later lists have. After an error all that is so, but not remembered for the
// next start; any later call tries that again.
func (i *Identity) Revoke(list []*attunev1.Revocation) error {
	r := &i.revoked
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.add(list, i.clock()) {
		i.log.Warn("certificates are revoked", "entries", len(r.list))
		r.unsaved = true
		i.closeRevoked()
	}
	return r.save()
}

// closeRevoked closes the connections that were made with what is revoked now. The caller
// has the lock.
func (i *Identity) closeRevoked() {
	r := &i.revoked
	for conn, chain := range r.held {
		if err := r.check(chain); err != nil {
			i.log.Warn("connection is closed", "peer", conn.RemoteAddr(), "error", err)
			delete(r.held, conn)
			_ = conn.Close()
		}
	}
}

// Revoked is the list so far. It must not be changed.
func (i *Identity) Revoked() []*attunev1.Revocation {
	i.revoked.mu.Lock()
	defer i.revoked.mu.Unlock()
	return slices.Clone(i.revoked.list)
}

// Remember has the list of revoked certificates lie in a file from now on, from
// which it is read first: so they are refused after a start, too, before anybody
// has told of them.
func (i *Identity) Remember(path string) error {
	r := &i.revoked
	r.mu.Lock()
	defer r.mu.Unlock()
	r.path = path
	text, err := readFile(path, public, os.Geteuid())
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	remembered := new(attunev1.Revocations)
	if err == nil {
		err = protojson.UnmarshalOptions{DiscardUnknown: true}.Unmarshal(text, remembered)
	}
	if err != nil {
		return fmt.Errorf("revoked certificates in %s: %w; if it is spoilt, delete it: the list comes from the registry again", path, err)
	}
	r.add(remembered.GetRevocations(), i.clock())
	return nil
}

// save replaces the file if it lacks something. The caller has the lock.
func (r *revocations) save() error {
	if r.path == "" || !r.unsaved {
		return nil
	}
	text, err := protojson.Marshal(&attunev1.Revocations{Revocations: r.list})
	if err == nil {
		err = outfile.PutDurably(r.path, text, 0o600)
	}
	if r.unsaved = err != nil; r.unsaved {
		return fmt.Errorf("remember revoked certificates for the next start: %w", err)
	}
	return nil
}

// Verify returns why a peer's certificate, which a handshake has found to be of the
// CA, is not believed.
func (i *Identity) Verify(state tls.ConnectionState) error { return i.Hold(nil, state) }

// IsRevoked says whether a certificate itself was revoked.
func (i *Identity) IsRevoked(c *x509.Certificate) bool {
	i.revoked.mu.Lock()
	defer i.revoked.mu.Unlock()
	return i.revoked.check([]*x509.Certificate{c}) != nil
}

// Hold is Verify for a connection that is closed when the certificate is revoked
// later. conn is the one beneath TLS; one that does not tell whether it is closed
// is not held, nor is nil.
func (i *Identity) Hold(conn net.Conn, state tls.ConnectionState) error {
	var chain []*x509.Certificate
	for _, verified := range state.VerifiedChains {
		chain = append(chain, verified...)
	}
	r := &i.revoked
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.check(chain); err != nil {
		return err
	}
	if _, tells := conn.(syscall.Conn); !tells {
		return nil
	}
	if len(r.held) >= r.prune {
		for conn := range r.held {
			if closed(conn.(syscall.Conn)) {
				delete(r.held, conn)
			}
		}
		r.prune = max(64, 2*len(r.held))
	}
	if r.held == nil {
		r.held = make(map[net.Conn][]*x509.Certificate)
	}
	r.held[conn] = chain
	return nil
}

// closed says whether a connection was closed on this side.
func closed(conn syscall.Conn) bool {
	raw, err := conn.SyscallConn()
	return err != nil || raw.Control(func(uintptr) {}) != nil
}
