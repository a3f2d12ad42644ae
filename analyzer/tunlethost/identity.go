// SPDX-License-Identifier: Apache-2.0

package tunlethost

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"time"

	"github.com/attune-hpc/attune/tunlets/sdk"
)

const (
	// serverName is the name in every certificate; peers are on this machine.
	serverName = "localhost"
	// backdated makes up for a clock that is set back a little during a run.
	backdated = time.Hour
	// validity is longer than any job.
	validity = 10 * 365 * 24 * time.Hour
)

// identity is a certificate that signs itself, for one process of this run:
// whoever is to talk to that process is given the certificate and trusts no
// other. It is what go-plugin's automatic mutual TLS uses too, on P-256 instead
// of P-521, for which Go has no fast arithmetic: a start with P-521 on both
// sides took 40 ms of CPU time, one with P-256 less than one
// (docs/design/0005).
type identity struct {
	pair tls.Certificate
	pem  []byte // the certificate
	key  []byte // the private key, PEM
}

func newIdentity() (*identity, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	now := time.Now()
	template := &x509.Certificate{
		Subject:     pkix.Name{CommonName: serverName, Organization: []string{"Attune"}},
		DNSNames:    []string{serverName},
		NotBefore:   now.Add(-backdated),
		NotAfter:    now.Add(validity),
		KeyUsage:    x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth},
		IsCA:        true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, err
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, err
	}
	return &identity{
		pair: tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key},
		pem:  pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		key:  pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}),
	}, nil
}

// meet prepares one connection between the host and a tunlet that is about to
// be started: the host's side, and what the tunlet's environment needs. A
// tunlet that announces a certificate of its own has go-plugin trust that one
// instead: the announcement comes through the tunlet's own pipe.
func (i *identity) meet() (*tls.Config, []string, error) {
	tunlet, err := newIdentity()
	if err != nil {
		return nil, nil, err
	}
	trusted := x509.NewCertPool()
	trusted.AppendCertsFromPEM(tunlet.pem)
	config := &tls.Config{
		MinVersion:   tls.VersionTLS12, // what go-plugin's own servers offer at least
		Certificates: []tls.Certificate{i.pair},
		RootCAs:      trusted,
		ServerName:   serverName,
	}
	return config, []string{
		sdk.ClientCertificateVariable + "=" + string(i.pem),
		sdk.CertificateVariable + "=" + string(bytes.Join([][]byte{tunlet.pem, tunlet.key}, nil)),
	}, nil
}
