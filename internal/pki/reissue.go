// SPDX-License-Identifier: Apache-2.0

package pki

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/x509"
	"errors"
	"fmt"
	"slices"
	"time"
)

// MaxRequest bounds a request for a certificate, bytes in DER.
const MaxRequest = 4 << 10

// ErrRequest means that a request for a certificate is none that is granted.
var ErrRequest = errors.New("request for a certificate")

// Reissue makes a certificate that says what an earlier one says: the same common
// name, URIs, hosts and usages. Only the key is that of the request (PKCS #10 in DER),
// whose signature is checked; nothing else in it is heeded. It holds from now on for
// valid. The caller has verified the earlier one. The chain is in PEM, without the
// root. [ErrRequest] where the request is refused.
func (a *Authority) Reissue(earlier *x509.Certificate, request []byte, valid time.Duration) (chain []byte, issued *x509.Certificate, err error) {
	key, err := keyOf(request)
	if err != nil {
		return nil, nil, fmt.Errorf("%w: %w", ErrRequest, err)
	}
	if err := renewable(earlier); err != nil {
		return nil, nil, fmt.Errorf("%w: %w", ErrRequest, err)
	}
	t := forTime(valid)
	t.Subject.CommonName = earlier.Subject.CommonName
	t.URIs, t.DNSNames, t.IPAddresses = earlier.URIs, earlier.DNSNames, earlier.IPAddresses
	t.ExtKeyUsage = earlier.ExtKeyUsage
	if issued, err = a.sign(t, key); err != nil {
		return nil, nil, err
	}
	return a.chain(issued), issued, nil
}

// keyOf is the public key of a request, of a kind whose signatures cost little to
// check.
func keyOf(request []byte) (any, error) {
	if len(request) > MaxRequest {
		return nil, fmt.Errorf("%d bytes, at most %d", len(request), MaxRequest)
	}
	parsed, err := x509.ParseCertificateRequest(request)
	if err != nil {
		return nil, err
	}
	switch key := parsed.PublicKey.(type) {
	case ed25519.PublicKey:
	case *ecdsa.PublicKey:
		if key.Curve != elliptic.P256() && key.Curve != elliptic.P384() {
			return nil, fmt.Errorf("curve %s: take P-256 or P-384", key.Curve.Params().Name)
		}
	default:
		return nil, fmt.Errorf("key of kind %s: take ECDSA or Ed25519", parsed.PublicKeyAlgorithm)
	}
	return parsed.PublicKey, parsed.CheckSignature()
}

// renewable says why a certificate cannot be issued once more as it is.
func renewable(c *x509.Certificate) error {
	usual := func(u x509.ExtKeyUsage) bool {
		return u == x509.ExtKeyUsageClientAuth || u == x509.ExtKeyUsageServerAuth
	}
	switch {
	case c.IsCA:
		return fmt.Errorf("the certificate of %q is a CA's", c.Subject.CommonName)
	case len(c.ExtKeyUsage) == 0 || len(c.UnknownExtKeyUsage) > 0 || slices.ContainsFunc(c.ExtKeyUsage, func(u x509.ExtKeyUsage) bool { return !usual(u) }):
		return fmt.Errorf("the certificate of %q is for other uses than clients and servers", c.Subject.CommonName)
	}
	_, err := PrincipalIn(c)
	return err
}
