// SPDX-License-Identifier: Apache-2.0

package pki

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"net"
	"strconv"
	"time"

	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// skew is how far the clocks of a site may be apart: a certificate holds from
// that long before it was issued, or a tenth of its time.
const skew = 5 * time.Minute

// Authority is a certificate authority: who issues certificates.
type Authority struct {
	certificate *x509.Certificate
	// above are the certificates from the CA that has signed this one's to the root;
	// a root has none.
	above []*x509.Certificate
	key   crypto.Signer
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

// NewAuthority makes a root: a CA that signs itself, ECDSA on P-256. Beside
// certificates it may sign issuing CAs ([Authority.NewIssuer]).
func NewAuthority(name string, valid time.Duration) (*Authority, error) {
	return newCA(nil, name, valid)
}

// NewIssuer makes an issuing CA: its certificate is signed by this CA, and it signs no
// other CAs, and nothing but certificates of clients and servers. Whoever believes the
// root believes what it issues.
func (a *Authority) NewIssuer(name string, valid time.Duration) (*Authority, error) {
	if a.certificate.MaxPathLen == 0 {
		return nil, fmt.Errorf("the CA %q may not sign another CA: make a new root (attune cert init)", a.certificate.Subject.CommonName)
	}
	return newCA(a, name, valid)
}

// newCA makes a CA below another one, or a root.
func newCA(above *Authority, name string, valid time.Duration) (*Authority, error) {
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
		IsCA:     true, BasicConstraintsValid: true, MaxPathLen: 1,
	}
	made := &Authority{key: key}
	if above == nil {
		above = &Authority{certificate: template, key: key}
	} else {
		template.MaxPathLen, template.MaxPathLenZero = 0, true
		template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth}
		made.above = append([]*x509.Certificate{above.certificate}, above.above...)
	}
	made.certificate, err = above.sign(template, key.Public())
	return made, err
}

// Certificate is the CA's own.
func (a *Authority) Certificate() *x509.Certificate { return a.certificate }

// IsRoot says whether the CA has signed its own certificate.
func (a *Authority) IsRoot() bool { return len(a.above) == 0 }

// root is the certificate that peers have to believe.
func (a *Authority) root() *x509.Certificate {
	if a.IsRoot() {
		return a.certificate
	}
	return a.above[len(a.above)-1]
}

// PEM is the CA's certificate, with those above it, and key as files have them.
func (a *Authority) PEM() (Issued, error) {
	key, err := encodeKey(a.key)
	return Issued{Cert: encodeCertificates(append([]*x509.Certificate{a.certificate}, a.above...)...), Key: key}, err
}

// Issue makes a key and a certificate to it.
func (a *Authority) Issue(r Request) (Issued, error) {
	template, err := r.template()
	if err != nil {
		return Issued{}, err
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return Issued{}, err
	}
	certificate, err := a.sign(template, key.Public())
	if err != nil {
		return Issued{}, err
	}
	encoded, err := encodeKey(key)
	return Issued{Cert: a.chain(certificate), Key: encoded}, err
}

// sign makes a certificate as the template has it. x509 chooses the serial number, at
// random.
func (a *Authority) sign(template *x509.Certificate, key crypto.PublicKey) (*x509.Certificate, error) {
	if template.NotAfter.After(a.certificate.NotAfter) {
		return nil, fmt.Errorf("the CA's own certificate ends before, on %s: ask for a shorter time or make a new CA",
			a.certificate.NotAfter.Local().Format(time.DateOnly))
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.certificate, key, a.key)
	if err != nil {
		return nil, fmt.Errorf("sign: %w", err)
	}
	return x509.ParseCertificate(der)
}

// chain is a certificate as a file has it: with those between it and the root.
func (a *Authority) chain(certificate *x509.Certificate) []byte {
	chain := []*x509.Certificate{certificate}
	if !a.IsRoot() {
		chain = append(append(chain, a.certificate), a.above[:len(a.above)-1]...)
	}
	return encodeCertificates(chain...)
}

// template is the certificate without issuer and key.
func (r Request) template() (*x509.Certificate, error) {
	if err := r.validate(); err != nil {
		return nil, err
	}
	t := forTime(r.Valid)
	t.Subject.CommonName = r.Name
	t.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
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

// Describes says whether a certificate names what the request asks for.
func (r Request) Describes(c *x509.Certificate) bool {
	t, err := r.template()
	return err == nil && saysTheSame(t, c) == nil
}

// forTime is a certificate that holds from now on, for nobody yet.
func forTime(valid time.Duration) *x509.Certificate {
	now := time.Now()
	return &x509.Certificate{
		NotBefore: now.Add(-min(skew, valid/10)), NotAfter: now.Add(valid),
		KeyUsage: x509.KeyUsageDigitalSignature, BasicConstraintsValid: true,
	}
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
