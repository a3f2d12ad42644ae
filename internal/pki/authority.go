// SPDX-License-Identifier: Apache-2.0

package pki

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"strconv"
	"time"

	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// skew is how far the clocks of a site may be apart: a certificate holds from
// that long before it was issued.
const skew = 5 * time.Minute

// Authority is a certificate authority: who issues certificates.
type Authority struct {
	certificate *x509.Certificate
	key         crypto.Signer
}

// Request says what a certificate is to name.
type Request struct {
	// Name of the user, or the host name of the node.
	Name string
	// Role is what it allows.
	Role attunev1.Role
	// UID is the user's; nil: none is named. Services have none.
	UID *uint32
	// Hosts are names and addresses under which its owner serves; empty: it
	// does not.
	Hosts []string
	// Valid is for how long, from now on.
	Valid time.Duration
}

// Issued is a certificate with its key, both PEM.
type Issued struct{ Cert, Key []byte }

// NewAuthority makes a CA that signs itself, ECDSA on P-256, and signs no other
// CAs.
func NewAuthority(name string, valid time.Duration) (*Authority, error) {
	if err := CheckName(name); err != nil {
		return nil, err
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	now := time.Now()
	template := &x509.Certificate{
		Subject:   pkix.Name{CommonName: name},
		NotBefore: now.Add(-skew), NotAfter: now.Add(valid),
		KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageCRLSign,
		IsCA:     true, BasicConstraintsValid: true, MaxPathLenZero: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, fmt.Errorf("sign the CA's certificate: %w", err)
	}
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, err
	}
	return &Authority{certificate: certificate, key: key}, nil
}

// Certificate is the CA's own.
func (a *Authority) Certificate() *x509.Certificate { return a.certificate }

// PEM is the CA's certificate and key as files have them.
func (a *Authority) PEM() (Issued, error) {
	key, err := encodeKey(a.key)
	return Issued{Cert: encodeCertificate(a.certificate.Raw), Key: key}, err
}

// Issue makes a key and a certificate to it. What it issues is checked as a
// peer would.
func (a *Authority) Issue(r Request) (Issued, error) {
	template, err := r.template()
	if err != nil {
		return Issued{}, err
	}
	if template.NotAfter.After(a.certificate.NotAfter) {
		return Issued{}, fmt.Errorf("the CA's own certificate ends before, on %s: ask for a shorter time or make a new CA",
			a.certificate.NotAfter.Local().Format(time.DateOnly))
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return Issued{}, err
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.certificate, key.Public(), a.key)
	if err != nil {
		return Issued{}, fmt.Errorf("sign: %w", err)
	}
	encoded, err := encodeKey(key)
	return Issued{Cert: encodeCertificate(der), Key: encoded}, err
}

// template is the certificate without issuer and key. The serial number is
// chosen by x509, at random.
func (r Request) template() (*x509.Certificate, error) {
	if err := r.validate(); err != nil {
		return nil, err
	}
	now := time.Now()
	t := &x509.Certificate{
		Subject:   pkix.Name{CommonName: r.Name},
		NotBefore: now.Add(-skew), NotAfter: now.Add(r.Valid),
		KeyUsage:              x509.KeyUsageDigitalSignature,
		ExtKeyUsage:           []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
		BasicConstraintsValid: true,
	}
	t.URIs = append(t.URIs, claim("role", RoleName(r.Role)))
	if r.UID != nil {
		t.URIs = append(t.URIs, claim("uid", strconv.FormatUint(uint64(*r.UID), 10)))
	}
	for _, host := range r.Hosts {
		if ip := net.ParseIP(host); ip != nil {
			t.IPAddresses = append(t.IPAddresses, ip)
		} else {
			t.DNSNames = append(t.DNSNames, host)
		}
	}
	if len(r.Hosts) > 0 {
		t.ExtKeyUsage = append(t.ExtKeyUsage, x509.ExtKeyUsageServerAuth)
	}
	return t, nil
}

func (r Request) validate() error {
	if err := CheckName(r.Name); err != nil {
		return err
	}
	switch {
	case RoleName(r.Role) == "":
		return errors.New("no role: there are user, admin, node, analyzer")
	case OfService(r.Role) && r.UID != nil:
		return fmt.Errorf("role %s is a service's: it has no user id", RoleName(r.Role))
	case r.UID != nil && *r.UID == NoUID:
		return fmt.Errorf("%d is nobody's user id", *r.UID)
	case r.Role == attunev1.Role_ROLE_USER && r.UID != nil && *r.UID == 0:
		return errors.New("root has no certificate of role user: take admin")
	case r.Valid <= 0:
		return fmt.Errorf("a certificate for %v is none", r.Valid)
	}
	return nil
}

func encodeCertificate(der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

func encodeKey(key crypto.Signer) ([]byte, error) {
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), nil
}

// ParseAuthority reads what PEM wrote.
func ParseAuthority(files Issued) (*Authority, error) {
	der, err := decodeOne(files.Cert, "CERTIFICATE")
	if err != nil {
		return nil, fmt.Errorf("the CA's certificate: %w", err)
	}
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, fmt.Errorf("the CA's certificate: %w", err)
	}
	if !certificate.IsCA {
		return nil, fmt.Errorf("the certificate of %q is not a CA's", certificate.Subject.CommonName)
	}
	if der, err = decodeOne(files.Key, "PRIVATE KEY"); err != nil {
		return nil, fmt.Errorf("the CA's key: %w", err)
	}
	parsed, err := x509.ParsePKCS8PrivateKey(der)
	if err != nil {
		return nil, fmt.Errorf("the CA's key: %w", err)
	}
	key, ok := parsed.(crypto.Signer)
	if !ok {
		return nil, fmt.Errorf("the CA's key cannot sign: %T", parsed)
	}
	public, ok := key.Public().(interface{ Equal(crypto.PublicKey) bool })
	if !ok || !public.Equal(certificate.PublicKey) {
		return nil, errors.New("the CA's key is not that of its certificate")
	}
	return &Authority{certificate: certificate, key: key}, nil
}

// decodeOne takes the only block of a PEM file.
func decodeOne(data []byte, kind string) ([]byte, error) {
	block, rest := pem.Decode(data)
	if block == nil || block.Type != kind || len(bytes.TrimSpace(rest)) > 0 {
		return nil, fmt.Errorf("want one PEM block %s and nothing else", kind)
	}
	return block.Bytes, nil
}
