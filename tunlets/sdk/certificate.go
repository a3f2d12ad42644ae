// SPDX-License-Identifier: Apache-2.0

package sdk

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
)

// The environment variables by which the Analyzer introduces itself to a
// tunlet that it starts.
const (
	// ClientCertificateVariable holds the Analyzer's certificate, PEM. The name
	// is go-plugin's, whose automatic mutual TLS goes by it: a tunlet that does
	// not know CertificateVariable makes a certificate of its own and announces
	// it in its handshake.
	ClientCertificateVariable = "PLUGIN_CLIENT_CERT"
	// CertificateVariable holds a certificate and its private key, PEM, made
	// for this one process to serve with. It can be read by those who can read
	// the process' memory, and by nobody else.
	CertificateVariable = "ATTUNE_TUNLET_CERTIFICATE"
)

// serverTLS returns how to serve the Analyzer that started this process: with
// the certificate that it handed over, and to nobody else. Both are nil if it
// handed none over; go-plugin then makes one. The variable is taken out of the
// environment, so that what a tunlet starts does not inherit the key.
func serverTLS() (*tls.Config, error) {
	identity := []byte(os.Getenv(CertificateVariable))
	if len(identity) == 0 {
		return nil, nil
	}
	if err := os.Unsetenv(CertificateVariable); err != nil {
		return nil, err
	}
	certificate, err := tls.X509KeyPair(identity, identity)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", CertificateVariable, err)
	}
	clients := x509.NewCertPool()
	if !clients.AppendCertsFromPEM([]byte(os.Getenv(ClientCertificateVariable))) {
		return nil, fmt.Errorf("%s holds no certificate", ClientCertificateVariable)
	}
	return &tls.Config{
		MinVersion:   tls.VersionTLS13,
		Certificates: []tls.Certificate{certificate},
		ClientAuth:   tls.RequireAndVerifyClientCert,
		ClientCAs:    clients,
	}, nil
}
