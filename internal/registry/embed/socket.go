// SPDX-License-Identifier: Apache-2.0

package embed

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"sync"
	"syscall"
	"time"

	nats "github.com/nats-io/nats-server/v2/server"

	"github.com/attune-hpc/attune/internal/peercred"
)

const (
	// firstWithin is how long a peer may take to say its first line.
	firstWithin = 5 * time.Second
	// maxFirst is how long that line may be, bytes.
	maxFirst = 16 << 10
)

// socket lets processes of this host in. nats-server knows no Unix sockets:
// each connection is passed on to one within the process, under a secret that
// stands for the user whom the kernel has named.
type socket struct {
	listener net.Listener
	server   func() *nats.Server // what serves now
	gate     *gate
	log      *slog.Logger
	tasks    sync.WaitGroup
	ctx      context.Context // ends with close
	cancel   context.CancelFunc
}

// listen makes the socket, in the place of one whose server died. The caller
// has made sure that there is no other server.
func listen(path string, server func() *nats.Server, g *gate, log *slog.Logger) (*socket, error) {
	listener, err := peercred.Listen(path)
	if err != nil {
		return nil, err
	}
	s := &socket{listener: listener, server: server, gate: g, log: log}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	s.tasks.Go(s.accept)
	return s, nil
}

func (s *socket) accept() {
	for {
		conn, err := s.listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil { // no descriptors left: it gets better
			s.log.Warn("registry socket cannot accept", "error", err)
			time.Sleep(100 * time.Millisecond)
			continue
		}
		s.tasks.Go(func() {
			if err := s.serve(conn); err != nil {
				s.log.Debug("registry socket: a peer was not let in", "error", err)
			}
		})
	}
}

// serve passes one connection on until either end closes.
func (s *socket) serve(conn net.Conn) error {
	defer func() { _ = conn.Close() }()
	peer, err := peercred.Of(conn.(syscall.Conn))
	if err != nil {
		return err
	}
	inner, err := s.server().InProcessConn()
	if err != nil {
		return err
	}
	defer func() { _ = inner.Close() }()
	defer context.AfterFunc(s.ctx, func() {
		_ = conn.Close()
		_ = inner.Close()
	})()
	secret := s.gate.admit(peer)
	defer s.gate.forgetSecret(secret)

	var both sync.WaitGroup
	both.Go(func() {
		_, _ = io.Copy(conn, inner)
		_ = conn.Close()
	})
	err = forward(conn, inner, secret)
	_ = inner.Close()
	both.Wait()
	return err
}

// forward passes on what the peer says, its first line with the secret in it.
func forward(conn, inner net.Conn, secret string) error {
	if err := conn.SetReadDeadline(time.Now().Add(firstWithin)); err != nil {
		return err
	}
	from := bufio.NewReaderSize(conn, maxFirst)
	line, err := from.ReadSlice('\n')
	if err != nil {
		return fmt.Errorf("first line: %w", err)
	}
	if line, err = withSecret(line, secret); err != nil {
		return err
	}
	if err := conn.SetReadDeadline(time.Time{}); err != nil {
		return err
	}
	// From here on either end may close, or break off.
	if _, err := inner.Write(line); err == nil {
		_, _ = io.Copy(inner, from)
	}
	return nil
}

// withSecret returns a CONNECT message with the secret as its only credential.
func withSecret(line []byte, secret string) ([]byte, error) {
	text, ok := bytes.CutPrefix(bytes.TrimRight(line, "\r\n"), []byte("CONNECT "))
	if !ok {
		return nil, errors.New("first line is not CONNECT")
	}
	var said map[string]any
	if err := json.Unmarshal(text, &said); err != nil || said == nil {
		return nil, fmt.Errorf("first line: no options: %w", err)
	}
	for _, credential := range []string{"user", "pass", "jwt", "nkey", "sig"} {
		delete(said, credential)
	}
	said["auth_token"] = secret
	text, err := json.Marshal(said)
	if err != nil {
		return nil, err
	}
	return fmt.Appendf(nil, "CONNECT %s\r\n", text), nil
}

// close ends all connections, and removes the socket.
func (s *socket) close() error {
	err := s.listener.Close()
	s.cancel()
	s.tasks.Wait()
	return err
}
