// SPDX-License-Identifier: Apache-2.0

package registry_test

import (
	"io"
	"net"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// wire stands between a client and its server and can be cut as a network is:
// nobody is told, nothing arrives.
type wire struct {
	URL string

	mu     sync.Mutex
	whole  *sync.Cond
	cut    bool
	hushed bool // only what the server says gets through
	closed bool
	conns  []net.Conn
}

// mustLay lays a wire to a server's Unix socket.
func mustLay(t *testing.T, to string) *wire {
	t.Helper()
	path := filepath.Join(t.TempDir(), "wire")
	listener, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	w := &wire{URL: "unix:" + path}
	w.whole = sync.NewCond(&w.mu)
	var tasks sync.WaitGroup
	tasks.Go(func() {
		for {
			near, err := listener.Accept()
			if err != nil {
				return
			}
			far, err := net.Dial("unix", strings.TrimPrefix(to, "unix:"))
			if err != nil || !w.note(near, far) {
				near.Close()
				continue
			}
			tasks.Go(func() { w.carry(near, far, false) })
			tasks.Go(func() { w.carry(far, near, true) })
		}
	})
	t.Cleanup(func() {
		listener.Close()
		w.mu.Lock()
		w.closed = true
		w.mu.Unlock()
		w.Mend()
		w.Break()
		tasks.Wait()
	})
	return w
}

func (w *wire) note(pair ...net.Conn) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.conns = append(w.conns, pair...)
	return !w.closed
}

func (w *wire) carry(to io.WriteCloser, from io.ReadCloser, toServer bool) {
	defer to.Close()
	defer from.Close()
	for buffer := make([]byte, 32<<10); ; {
		n, err := from.Read(buffer)
		if err != nil {
			return
		}
		w.mu.Lock()
		for w.cut || toServer && w.hushed {
			w.whole.Wait()
		}
		w.mu.Unlock()
		if _, err := to.Write(buffer[:n]); err != nil {
			return
		}
	}
}

// Cut lets nothing through from now on.
func (w *wire) Cut() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.cut = true
}

// Hush lets nothing through to the server from now on.
func (w *wire) Hush() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.hushed = true
}

// Mend lets through what has waited, and all that follows.
func (w *wire) Mend() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.cut, w.hushed = false, false
	w.whole.Broadcast()
}

// Break closes the connections, as a reset does.
func (w *wire) Break() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, conn := range w.conns {
		conn.Close()
	}
	w.conns = nil
}
