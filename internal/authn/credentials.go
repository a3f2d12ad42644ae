// SPDX-License-Identifier: Apache-2.0

package authn

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"syscall"

	"google.golang.org/grpc/credentials"

	"github.com/attune-hpc/attune/internal/peercred"
	"github.com/attune-hpc/attune/internal/pki"
	"github.com/attune-hpc/attune/internal/quota"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// ErrNotKnown refuses connections on which nobody vouches for the peer.
var ErrNotKnown = errors.New("the peer is not known")

// Options say who is let in.
type Options struct {
	// Identity is the own certificate, for TCP; peers' certificates hold by its
	// clock. Nil: Unix sockets only.
	Identity *pki.Identity
	// Admit decides whether a peer is let in, which a client asks about the
	// server as well. Nil: everybody who is known.
	Admit func(*attunev1.Principal) error
	// Refused is told why a connection was not made, for logs: the peer itself
	// learns little. It may be called by many goroutines at once. Nil: nobody
	// is told.
	Refused func(peer net.Addr, err error)
}

// New returns credentials for servers and clients. How long a peer may take to
// say who it is, the server says (grpc.ConnectionTimeout).
func New(o Options) credentials.TransportCredentials {
	return &transport{options: o, connections: quota.NewAtOnce[string](peercred.PerUser)}
}

type transport struct {
	options     Options
	connections *quota.AtOnce[string] // to a server, by person
}

// ServerHandshake finds out who has connected. A person has as many connections as at a
// Unix socket, however they come.
func (t *transport) ServerHandshake(raw net.Conn) (net.Conn, credentials.AuthInfo, error) {
	leave := func() {}
	admit := func(who *attunev1.Principal) error {
		key := keyOf(who)
		switch {
		case who.GetRole() == attunev1.Role_ROLE_NODE:
		case !t.connections.Enter(key):
			return fmt.Errorf("%w: %s has %d connections, which is the most", ErrNotAdmitted, who.GetName(), peercred.PerUser)
		default:
			leave = sync.OnceFunc(func() { t.connections.Leave(key) })
		}
		return nil
	}
	conn, info, err := t.checked(raw, admit, func(identity *pki.Identity) (net.Conn, credentials.AuthInfo, error) {
		return credentials.NewTLS(identity.ServerConfig()).ServerHandshake(raw)
	})
	if err != nil {
		return nil, nil, err
	}
	return counted{conn, leave}, info, nil
}

// counted is a connection that counts while it is open.
type counted struct {
	net.Conn
	leave func()
}

// Close closes the connection.
func (c counted) Close() error {
	c.leave()
	return c.Conn.Close()
}

// ClientHandshake finds out who serves. Over TCP it must be the host that was
// dialled.
func (t *transport) ClientHandshake(ctx context.Context, authority string, conn net.Conn) (net.Conn, credentials.AuthInfo, error) {
	everybody := func(*attunev1.Principal) error { return nil }
	return t.checked(conn, everybody, func(identity *pki.Identity) (net.Conn, credentials.AuthInfo, error) {
		if _, err := identity.Certificate(); err != nil {
			return nil, nil, err // the server would say less
		}
		encrypted, auth, err := credentials.NewTLS(identity.ClientConfig()).ClientHandshake(ctx, authority, conn)
		if err != nil {
			return nil, nil, err
		}
		return encrypted, auth, identity.Hold(conn, auth.(credentials.TLSInfo).State)
	})
}

// checked asks the kernel or makes TLS, and then whether the peer is let in. A
// connection that is not goes nowhere.
func (t *transport) checked(
	raw net.Conn, admit func(*attunev1.Principal) error, secure func(*pki.Identity) (net.Conn, credentials.AuthInfo, error),
) (net.Conn, credentials.AuthInfo, error) {
	conn, info, err := t.identify(raw, secure)
	if err == nil && t.options.Admit != nil {
		err = t.options.Admit(info.Principal)
	}
	if err == nil {
		err = admit(info.Principal)
	}
	if err == nil {
		return conn, info, nil
	}
	if t.options.Refused != nil {
		t.options.Refused(raw.RemoteAddr(), err)
	}
	_ = raw.Close() // it may be closed already
	return nil, nil, err
}

func (t *transport) identify(conn net.Conn, secure func(*pki.Identity) (net.Conn, credentials.AuthInfo, error)) (net.Conn, Info, error) {
	switch raw := conn.(type) {
	case *net.TCPConn:
		if t.options.Identity == nil {
			return nil, Info{}, fmt.Errorf("%w: TCP needs a certificate (attune cert), without it there are Unix sockets only", ErrNotKnown)
		}
		encrypted, auth, err := secure(t.options.Identity)
		if err != nil {
			return nil, Info{}, err
		}
		info, err := ofTLS(auth, t.options.Identity.Now)
		return encrypted, info, err
	case syscall.Conn: // also one that wraps a *net.UnixConn
		peer, err := peercred.Of(raw)
		if err != nil {
			return nil, Info{}, fmt.Errorf("%w: %w", ErrNotKnown, err)
		}
		return conn, ofPeer(peer), nil
	}
	return nil, Info{}, fmt.Errorf("%w: %T is neither a Unix socket nor TCP", ErrNotKnown, conn)
}

// Info describes the protocol.
func (t *transport) Info() credentials.ProtocolInfo {
	return credentials.ProtocolInfo{SecurityProtocol: "tls"}
}

// Clone returns the same: nothing in it changes.
func (t *transport) Clone() credentials.TransportCredentials { return t }

// OverrideServerName refuses: whom a client means is what it dials.
func (t *transport) OverrideServerName(string) error {
	return errors.New("the server's name is the one that is dialled")
}
