// SPDX-License-Identifier: Apache-2.0

package peercred

import (
	"net"
	"os"
	"sync"

	"github.com/attune-hpc/attune/internal/quota"
)

// PerUser is how many connections one user gets of a service that everybody may
// connect to, unless there is a reason for another number: a login node has many
// commands running at a time, and a service 1024 descriptors at the least.
const PerUser = 64

// Limit bounds how many connections one user may have open at a listener, so
// that nobody takes the descriptors which root's need: what is beyond is closed
// at once. Root and the process' own user are not bounded. The connections are
// syscall.Conn, for [Of].
func Limit(listener *net.UnixListener, perUser int) net.Listener {
	return &limited{UnixListener: listener, open: quota.NewAtOnce[int](perUser)}
}

type limited struct {
	*net.UnixListener
	open *quota.AtOnce[int] // connections by user
}

// Accept returns the next connection that is not beyond the limit.
func (l *limited) Accept() (net.Conn, error) {
	for {
		conn, err := l.AcceptUnix()
		if err != nil {
			return nil, err
		}
		if peer, err := Of(conn); err == nil {
			if leave, ok := l.enter(peer.UID); ok {
				return &counted{UnixConn: conn, leave: leave}, nil
			}
		}
		_ = conn.Close() // nothing was said yet
	}
}

// enter counts a connection until leave is called.
func (l *limited) enter(uid int) (leave func(), ok bool) {
	if uid == 0 || uid == os.Geteuid() {
		return func() {}, true
	}
	return sync.OnceFunc(func() { l.open.Leave(uid) }), l.open.Enter(uid)
}

// counted is a connection that counts while it is open.
type counted struct {
	*net.UnixConn
	leave func()
}

// Close closes the connection.
func (c *counted) Close() error {
	c.leave()
	return c.UnixConn.Close()
}
