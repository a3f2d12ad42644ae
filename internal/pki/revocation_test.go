// SPDX-License-Identifier: Apache-2.0

package pki_test

import (
	"crypto/tls"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/attune-hpc/attune/internal/pki"
	"github.com/attune-hpc/attune/internal/testing/files"
	"github.com/attune-hpc/attune/internal/testing/patience"
	"github.com/attune-hpc/attune/internal/testing/pkitest"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// pair is a TLS connection over TCP.
type pair struct {
	server, client *tls.Conn
	err            error // of either handshake, as the server has it
}

// connect has a client speak to a server. The client's end is raw where it knows of
// no revocations, as a thief's would.
func connect(t *testing.T, server, client *pki.Identity) pair {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	near, err := net.Dial("tcp", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	far, err := listener.Accept()
	if err != nil {
		t.Fatal(err)
	}
	config := client.ClientConfig()
	config.ServerName = "127.0.0.1"
	p := pair{tls.Server(far, server.ServerConfig()), tls.Client(near, config), nil}
	t.Cleanup(func() { _, _ = p.server.Close(), p.client.Close() })
	handshake := make(chan error, 1)
	go func() { handshake <- p.client.HandshakeContext(t.Context()) }()
	p.err = errors.Join(p.server.HandshakeContext(t.Context()))
	if err := patience.Receive(t, "the client's end of the handshake", handshake); err != nil {
		p.err = errors.Join(p.err, err)
	}
	return p
}

// TestRevoke: what is revoked is refused from then on and its connections end, in
// either direction; everybody else stays.
func TestRevoke(t *testing.T) {
	site := pkitest.New(t)
	mallory, other := site.User(t, "mallory", 1001), site.User(t, "other", 1002)
	soon := time.Now().Add(time.Hour).Unix()
	past := mallory.Leaf().NotBefore.Unix()
	for _, tt := range []struct {
		name    string
		r       *attunev1.Revocation
		refused bool
	}{
		{"its serial number", &attunev1.Revocation{Serial: pki.SerialOf(mallory.Leaf())}, true},
		{"another serial number", &attunev1.Revocation{Serial: "abc"}, false},
		{"its name", &attunev1.Revocation{Name: "mallory", BeforeUnix: soon}, true},
		{"its name and role", &attunev1.Revocation{Name: "mallory", Role: attunev1.Role_ROLE_USER, BeforeUnix: soon}, true},
		{"its name in another role", &attunev1.Revocation{Name: "mallory", Role: attunev1.Role_ROLE_NODE, BeforeUnix: soon}, false},
		{"earlier ones of its name", &attunev1.Revocation{Name: "mallory", BeforeUnix: past}, false},
		{"what has expired", &attunev1.Revocation{Name: "mallory", BeforeUnix: soon, ExpiresUnix: time.Now().Unix() - 1}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			server := site.Node(t, "server")
			before, bystander := connect(t, server, mallory), connect(t, server, other)
			if err := errors.Join(before.err, bystander.err); err != nil {
				t.Fatal(err)
			}
			server.Revoke([]*attunev1.Revocation{tt.r})
			ended := make(chan error, 1)
			go func() {
				_, err := before.client.Read(make([]byte, 1))
				ended <- err
			}()
			if tt.refused {
				if err := patience.Receive(t, "the end of the connection", ended); err == nil {
					t.Error("something was read")
				}
			} else if _, err := before.server.Write([]byte("x")); err != nil {
				t.Errorf("connection: %v", err)
			}
			if server.IsRevoked(mallory.Leaf()) != tt.refused {
				t.Errorf("revoked: %v, want %v", !tt.refused, tt.refused)
			}
			if err := connect(t, server, mallory).err; errors.Is(err, pki.ErrRevoked) != tt.refused || (err != nil) != tt.refused {
				t.Errorf("again: %v, want it refused: %v", err, tt.refused)
			}
			if _, err := bystander.server.Write([]byte("x")); err != nil {
				t.Errorf("somebody else's connection: %v", err)
			}
			if err := connect(t, server, other).err; err != nil {
				t.Errorf("somebody else: %v", err)
			}
		})
	}
}

// TestRevokedServer: a client refuses a server whose certificate is revoked.
func TestRevokedServer(t *testing.T) {
	site := pkitest.New(t)
	server, client := site.Node(t, "server"), site.User(t, "user", 1001)
	client.Revoke([]*attunev1.Revocation{{Serial: pki.SerialOf(server.Leaf()), Reason: "stolen"}})
	if err := connect(t, server, client).err; !errors.Is(err, pki.ErrRevoked) || !strings.Contains(err.Error(), "stolen") {
		t.Errorf("%v, want %v", err, pki.ErrRevoked)
	}
}

// TestRevokedIsRemembered: a list outlives its process, and what later lists leave
// out stays revoked. A spoilt file is an error with the remedy.
func TestRevokedIsRemembered(t *testing.T) {
	site := pkitest.New(t)
	path := filepath.Join(t.TempDir(), "revoked.json")
	mallory := site.User(t, "mallory", 1001)
	first := site.Node(t, "first")
	if err := first.Remember(path); err != nil {
		t.Fatal(err)
	}
	first.Revoke([]*attunev1.Revocation{{Serial: pki.SerialOf(mallory.Leaf())}})
	first.Revoke([]*attunev1.Revocation{{Serial: "abc"}})
	next := site.Node(t, "next")
	if err := next.Remember(path); err != nil {
		t.Fatal(err)
	}
	if err := connect(t, next, mallory).err; !errors.Is(err, pki.ErrRevoked) {
		t.Errorf("after a start: %v", err)
	}
	if n := len(next.Revoked()); n != 2 {
		t.Errorf("%d entries are remembered, want 2", n)
	}
	files.Write(t, path, "{", 0o600)
	if err := site.Node(t, "third").Remember(path); err == nil || !strings.Contains(err.Error(), "delete it") {
		t.Errorf("spoilt: %v", err)
	}
}

// TestRevokedIsRememberedLater: a list that could not be written is written by the next
// call, also if that has nothing new.
func TestRevokedIsRememberedLater(t *testing.T) {
	site := pkitest.New(t)
	dir := filepath.Join(t.TempDir(), "state") // not there: nothing can be written in it
	path := filepath.Join(dir, "revoked.json")
	first, list := site.Node(t, "first"), []*attunev1.Revocation{{Serial: "abc"}}
	if err := first.Remember(path); err != nil {
		t.Fatal(err)
	}
	if err := first.Revoke(list); err == nil {
		t.Error("it is not told that the list is not written")
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := first.Revoke(list); err != nil {
		t.Error(err)
	}
	next := site.Node(t, "next")
	if err := next.Remember(path); err != nil {
		t.Fatal(err)
	}
	if n := len(next.Revoked()); n != 1 {
		t.Errorf("%d entries are remembered, want 1", n)
	}
}

// TestHeldConnectionsAreForgotten: connections that have ended are not kept.
func TestHeldConnectionsAreForgotten(t *testing.T) {
	site := pkitest.New(t)
	server, client := site.Node(t, "server"), site.User(t, "user", 1001)
	for range 300 {
		p := connect(t, server, client)
		if p.err != nil {
			t.Fatal(p.err)
		}
		_, _ = p.server.Close(), p.client.Close()
	}
	if n := pki.Held(server); n > 128 {
		t.Errorf("%d connections are kept, all of which have ended", n)
	}
}

func TestParseSerial(t *testing.T) {
	for text, want := range map[string]string{
		"1f:0A:77": "1f0a77", "001": "1", "": "", "0": "", "-1": "", "xyz": "", strings.Repeat("f", 40): strings.Repeat("f", 40), strings.Repeat("f", 41): "",
	} {
		got, err := pki.ParseSerial(text)
		if got != want || (err == nil) != (want != "") {
			t.Errorf("%q: %q, %v; want %q", text, got, err, want)
		}
	}
}
