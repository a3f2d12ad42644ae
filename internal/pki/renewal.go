// SPDX-License-Identifier: Apache-2.0

package pki

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"
)

// Renewal is a new key for an identity, with the request for a certificate to it.
type Renewal struct {
	key     *ecdsa.PrivateKey
	request []byte
}

// NewRenewal makes a key, ECDSA on P-256.
func NewRenewal() (*Renewal, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	request, err := x509.CreateCertificateRequest(rand.Reader, new(x509.CertificateRequest), key)
	return &Renewal{key: key, request: request}, err
}

// Request is what a CA is to be shown: PKCS #10 in DER. It names nobody.
func (r *Renewal) Request() []byte { return r.request }

// Renew writes what a CA has answered to a renewal, certificates in PEM, over the
// identity's files, if it can be used: it holds now, is of the CA, to the renewal's
// key, and says what the certificate before says. Handshakes have it from then on.
func (i *Identity) Renew(r *Renewal, answer []byte) error {
	chain, err := decodeCertificates(answer)
	if err != nil {
		return fmt.Errorf("the answer: %w", err)
	}
	key, err := encodeKey(r.key)
	if err != nil {
		return err
	}
	issued := Issued{Cert: encodeCertificates(chain...), Key: key}
	m := material{roots: i.current().roots}
	if m.certificate, err = tls.X509KeyPair(issued.Cert, issued.Key); err != nil {
		return fmt.Errorf("the answer: %w", err)
	}
	if err := i.files.check(issued.Cert, m.roots, i.Now()); err != nil {
		return fmt.Errorf("the answer: %w", err)
	}
	if err := saysTheSame(i.Leaf(), m.certificate.Leaf); err != nil {
		return fmt.Errorf("the answer: %w", err)
	}
	if err := issued.Write(i.files.Cert, i.files.Key, true); err != nil {
		return err
	}
	if !i.Leaf().Equal(m.certificate.Leaf) {
		return fmt.Errorf("%s was replaced by somebody else at the same time", i.files.Cert)
	}
	return nil
}

// saysTheSame says in what two certificates differ that says who somebody is.
func saysTheSame(a, b *x509.Certificate) error {
	uri := func(a, b *url.URL) bool { return a.String() == b.String() }
	for _, row := range []struct {
		what string
		same bool
	}{
		{"common name", a.Subject.CommonName == b.Subject.CommonName},
		{"role or user id", slices.EqualFunc(a.URIs, b.URIs, uri)},
		{"list of host names", slices.Equal(a.DNSNames, b.DNSNames)},
		{"list of addresses", slices.EqualFunc(a.IPAddresses, b.IPAddresses, net.IP.Equal)},
		{"list of usages", slices.Equal(a.ExtKeyUsage, b.ExtKeyUsage)},
	} {
		if !row.same {
			return fmt.Errorf("it has another %s than the certificate of %q", row.what, a.Subject.CommonName)
		}
	}
	return nil
}

// Renewable says why this process cannot replace certificate and key: whoever owns the
// key does that, and needs to be let write where they are.
func (f Files) Renewable() error {
	var st unix.Stat_t
	if err := unix.Stat(f.Key, &st); err != nil {
		return &os.PathError{Op: "stat", Path: f.Key, Err: err}
	}
	if int(st.Uid) != os.Geteuid() {
		return fmt.Errorf("%s belongs to user %d: only its owner renews it", f.Key, st.Uid)
	}
	for _, path := range []string{f.Cert, f.Key} {
		dir := filepath.Dir(path)
		if err := unix.Faccessat(unix.AT_FDCWD, dir, unix.W_OK, unix.AT_EACCESS); err != nil {
			return fmt.Errorf("a renewed certificate cannot be written to %s: %w; keep certificate and key where the service may write", dir, err)
		}
	}
	return nil
}

// Renewable says why the identity's files cannot be replaced, see [Files.Renewable].
func (i *Identity) Renewable() error {
	if i == nil {
		return errors.New("there is no certificate to renew")
	}
	return i.files.Renewable()
}
