// SPDX-License-Identifier: Apache-2.0

package tunlethost

import (
	"crypto/tls"
	"crypto/x509"
	"net"
	"strings"
	"testing"

	"github.com/attune-hpc/attune/tunlets/sdk"
)

// One tunlet's certificate is of no use for being taken for another one, and
// only the host's certificate opens a connection.
func TestIdentitiesTrustEachOtherAlone(t *testing.T) {
	host, tunlet := mustIdentity(t), mustIdentity(t)
	config, env, err := host.meet()
	if err != nil {
		t.Fatal(err)
	}
	own := served(t, env)
	strangers := &tls.Config{Certificates: []tls.Certificate{tunlet.pair}, RootCAs: config.RootCAs, ServerName: serverName}
	anonymous := &tls.Config{RootCAs: config.RootCAs, ServerName: serverName}
	impostor := own.Clone()
	impostor.Certificates = []tls.Certificate{tunlet.pair}
	for name, tt := range map[string]struct {
		client, server *tls.Config
		trusted        bool
	}{
		"the two that were introduced": {config, own, true},
		"another client":               {strangers, own, false},
		"a client without certificate": {anonymous, own, false},
		"another server":               {config, impostor, false},
	} {
		if err := connect(tt.client, tt.server); (err == nil) != tt.trusted {
			t.Errorf("%s: %v, want trusted %v", name, err, tt.trusted)
		}
	}
}

// served is the tunlet's side as the SDK reads it from the environment.
func served(t *testing.T, env []string) *tls.Config {
	t.Helper()
	values := map[string]string{}
	for _, variable := range env {
		name, value, _ := strings.Cut(variable, "=")
		values[name] = value
	}
	pair, err := tls.X509KeyPair([]byte(values[sdk.CertificateVariable]), []byte(values[sdk.CertificateVariable]))
	if err != nil {
		t.Fatal(err)
	}
	clients := x509.NewCertPool()
	if !clients.AppendCertsFromPEM([]byte(values[sdk.ClientCertificateVariable])) {
		t.Fatal("no client certificate in the environment")
	}
	return &tls.Config{Certificates: []tls.Certificate{pair}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: clients}
}

// connect performs both sides of a handshake and exchanges a byte, since in
// TLS 1.3 the server's refusal arrives after the client's handshake.
func connect(client, server *tls.Config) error {
	near, far := net.Pipe()
	defer near.Close()
	defer far.Close()
	go func() {
		s := tls.Server(far, server)
		if s.Handshake() == nil {
			_, _ = s.Write([]byte{1})
		}
		_ = s.Close()
	}()
	_, err := tls.Client(near, client).Read(make([]byte, 1))
	return err
}

func mustIdentity(t *testing.T) *identity {
	t.Helper()
	i, err := newIdentity()
	if err != nil {
		t.Fatal(err)
	}
	return i
}
