// SPDX-License-Identifier: Apache-2.0

package loop

import (
	"io"
	"net"
	"sync"
	"testing"
)

// line passes on what is said at one socket to another one, until it is cut.
type line struct {
	listener net.Listener
	work     sync.WaitGroup

	mu    sync.Mutex // guards what follows
	dead  bool
	conns []net.Conn
}

// extend listens at a path for whoever wants to talk to the other address.
func extend(t *testing.T, at, to string) *line {
	t.Helper()
	listener, err := net.Listen("unix", at)
	if err != nil {
		t.Fatal(err)
	}
	l := &line{listener: listener}
	l.work.Go(func() {
		for {
			near, err := listener.Accept()
			if err != nil {
				return
			}
			far, err := net.Dial("unix", to)
			if err != nil {
				_ = near.Close() // it hears that nobody is there
				continue
			}
			l.join(near, far)
		}
	})
	t.Cleanup(l.cut)
	return l
}

// join passes on what either says. The end of one is that of both.
func (l *line) join(near, far net.Conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.conns = append(l.conns, near, far)
	pass := func(to, from net.Conn) {
		_, _ = io.Copy(to, from) // ends with either
		_, _ = to.Close(), from.Close()
	}
	l.work.Go(func() { pass(near, far) })
	l.work.Go(func() { pass(far, near) })
	if l.dead {
		l.closeAll()
	}
}

func (l *line) closeAll() {
	for _, c := range l.conns {
		_ = c.Close() // a second time is fine
	}
}

// cut ends all connections in the middle of whatever is said, and admits no other:
// to either side, the other one has died.
func (l *line) cut() {
	l.mu.Lock()
	l.dead = true
	l.closeAll()
	l.mu.Unlock()
	_ = l.listener.Close() // a second time is fine
	l.work.Wait()
}
