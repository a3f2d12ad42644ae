// SPDX-License-Identifier: Apache-2.0

package analyzer

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"

	"golang.org/x/sys/unix"
	"google.golang.org/grpc/credentials"
)

// errNotLocal refuses peers that are not on a Unix socket: over a network they
// would have to prove who they are by a certificate.
var errNotLocal = errors.New("only Unix sockets are served without TLS")

// peerCredentials lets in peers on a Unix socket that run as the present user
// or as root, as the kernel tells (SO_PEERCRED). It is for servers only.
type peerCredentials struct{}

// peerInfo is who a peer is.
type peerInfo struct {
	credentials.CommonAuthInfo

	uid uint32
	pid int32
}

// AuthType names the way in which the peer was checked.
func (peerInfo) AuthType() string { return "so_peercred" }

// ServerHandshake checks a new connection's peer; nothing is sent.
func (peerCredentials) ServerHandshake(conn net.Conn) (net.Conn, credentials.AuthInfo, error) {
	info, err := peerOf(conn)
	if err == nil {
		err = allowed(info.uid, os.Geteuid())
	}
	if err != nil {
		return nil, nil, errors.Join(err, conn.Close())
	}
	info.SecurityLevel = credentials.PrivacyAndIntegrity // it does not leave the kernel
	return conn, info, nil
}

// peerOf asks the kernel who is at the other end.
func peerOf(conn net.Conn) (peerInfo, error) {
	uc, ok := conn.(*net.UnixConn)
	if !ok {
		return peerInfo{}, errNotLocal
	}
	raw, err := uc.SyscallConn()
	if err != nil {
		return peerInfo{}, err
	}
	var cred *unix.Ucred
	var credErr error
	if err := raw.Control(func(fd uintptr) {
		cred, credErr = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
	}); err != nil {
		return peerInfo{}, err
	}
	if credErr != nil {
		return peerInfo{}, fmt.Errorf("read the peer's credentials: %w", credErr)
	}
	return peerInfo{uid: cred.Uid, pid: cred.Pid}, nil
}

// allowed reports whether a user may connect to an Analyzer that runs as own.
func allowed(uid uint32, own int) error {
	if uid != 0 && int(uid) != own {
		return fmt.Errorf("peer is user %d, only user %d and root may connect", uid, own)
	}
	return nil
}

// ClientHandshake refuses: these credentials are for servers.
func (peerCredentials) ClientHandshake(context.Context, string, net.Conn) (net.Conn, credentials.AuthInfo, error) {
	return nil, nil, errors.New("peer credentials are for servers")
}

// Info describes the protocol.
func (peerCredentials) Info() credentials.ProtocolInfo {
	return credentials.ProtocolInfo{SecurityProtocol: "so_peercred"}
}

// Clone returns the same: there is no state.
func (c peerCredentials) Clone() credentials.TransportCredentials { return c }

// OverrideServerName does nothing; the interface asks for it.
func (peerCredentials) OverrideServerName(string) error { return nil }
