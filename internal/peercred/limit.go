// SPDX-License-Identifier: Apache-2.0

package peercred

import (
	"net"
	"os"
	"sync"
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
	return &limited{UnixListener: listener, perUser: perUser, open: make(map[int]int)}
}

type limited struct {
	*net.UnixListener
	perUser int

	mu   sync.Mutex  // guards what follows; a leaf lock
	open map[int]int // connections by user
}

// Accept returns the next connection that is not beyond the limit.
func (l *limited) Accept() (net.Conn, error) {
	for {
		conn, err := l.AcceptUnix()
		if err != nil {
			return nil, err
		}
		if peer, err := Of(conn); err == nil && l.enter(peer.UID) {
			return &counted{UnixConn: conn, leave: sync.OnceFunc(func() { l.leave(peer.UID) })}, nil
		}
		_ = conn.Close() // nothing was said yet
	}
}

func (l *limited) enter(uid int) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.open[uid] >= l.perUser && uid != 0 && uid != os.Geteuid() {
		return false
	}
	l.open[uid]++
	return true
}

func (l *limited) leave(uid int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.open[uid]--; l.open[uid] == 0 {
		delete(l.open, uid)
	}
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
