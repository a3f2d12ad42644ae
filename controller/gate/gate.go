// SPDX-License-Identifier: Apache-2.0

package gate

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/attune-hpc/attune/controller/shm"
	"github.com/attune-hpc/attune/internal/passing"
	"github.com/attune-hpc/attune/internal/pending"
	"github.com/attune-hpc/attune/internal/quota"
	"github.com/attune-hpc/attune/internal/unixmsg"
)

// acceptPause follows an accept that was refused for lack of something,
// descriptors above all.
const acceptPause = 10 * time.Millisecond

// Gate is the start gate of one controller.
type Gate struct {
	options   Options
	listener  *net.UnixListener
	early     *earlySocket // nil: its path would be too long
	closed    chan struct{}
	once      sync.Once
	handlers  sync.WaitGroup
	places    chan struct{}      // one token per connection being served
	owner     shm.Owner          // of the memory files
	perPID    *quota.AtOnce[int] // connections, so that no process takes all places
	strangers strangers

	mu    sync.Mutex
	conns map[*net.UnixConn]struct{} // nil once closed
	// earlyServed: who looks at early closes it.
	earlyServed bool
}

// New makes the socket; from then on processes can connect, and wait for
// Serve. The caller calls Close.
func New(o Options) (*Gate, error) {
	o, err := o.complete()
	if err != nil {
		return nil, err
	}
	o.Log = o.Log.With("component", "attach")
	owner, err := shm.ThisProcess()
	if err != nil {
		return nil, err
	}
	listener, err := listen(o.Path, o.Mode)
	if err != nil {
		return nil, err
	}
	early, err := newEarlySocket(o)
	if err != nil {
		return nil, errors.Join(err, listener.Close())
	}
	g := &Gate{
		owner:     owner,
		options:   o,
		listener:  listener,
		early:     early,
		closed:    make(chan struct{}),
		places:    make(chan struct{}, o.connections),
		conns:     map[*net.UnixConn]struct{}{},
		perPID:    quota.NewAtOnce[int](connectionsPerProcess),
		strangers: newStrangers(o),
	}
	if err := g.writeHeaders(); err != nil {
		return nil, errors.Join(err, g.Close())
	}
	return g, nil
}

// Serve lets processes through until ctx ends or Close is called, then cuts
// off those that are at the gate, waits for the callbacks and returns nil. It
// is called once.
func (g *Gate) Serve(ctx context.Context) error {
	stop := context.AfterFunc(ctx, g.shut)
	defer stop()
	defer g.handlers.Wait()
	var early sync.WaitGroup
	var earlyErr error
	if g.early != nil && g.lookEarly() {
		early.Go(func() { earlyErr = g.serveEarly() })
	}
	err := g.serveAll()
	g.shut() // an error here ends the other
	early.Wait()
	g.strangers.tellRest()
	return errors.Join(err, earlyErr)
}

// serveAll serves those who come to the socket until the Gate is closed.
func (g *Gate) serveAll() error {
	var refused unixmsg.Refused
	defer func() { _ = refused.Close() }() // nothing was read
	for {
		if refused.Waiting() && !pending.Input(g.listener) {
			_ = refused.Close() // as above
		}
		select {
		case <-g.closed:
			return nil
		case g.places <- struct{}{}:
		}
		conn, err := g.accept()
		if err != nil {
			return err
		}
		if conn == nil || !g.strangers.admit(conn, &refused) || !g.enter(conn) {
			<-g.places
			continue
		}
		go func() {
			defer g.leave(conn)
			g.serve(conn)
		}()
	}
}

// accept waits for a connection; nil if there is none this time.
func (g *Gate) accept() (*net.UnixConn, error) {
	conn, err := g.listener.AcceptUnix()
	if err == nil || errors.Is(err, net.ErrClosed) {
		return conn, nil
	}
	if !passing.Error(err) {
		return nil, fmt.Errorf("start gate: %w", err)
	}
	g.options.Log.Warn("processes have to wait at the start gate", "reason", err)
	g.pause(acceptPause)
	return nil, nil
}

// pause lasts no longer than until the Gate is closed.
func (g *Gate) pause(d time.Duration) {
	select {
	case <-g.closed:
	case <-time.After(d):
	}
}

// enter remembers the connection, so that Close can cut it off and wait for its
// goroutine; false if it is too late.
func (g *Gate) enter(conn *net.UnixConn) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.conns == nil {
		conn.Close()
		return false
	}
	g.conns[conn] = struct{}{}
	g.handlers.Add(1)
	return true
}

// lookEarly says that what is left early will be looked at, and whether it is not
// too late.
func (g *Gate) lookEarly() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.earlyServed = g.conns != nil
	return g.earlyServed
}

// begin has Close wait for handlers.Done; false if it is too late.
func (g *Gate) begin() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.conns == nil {
		return false
	}
	g.handlers.Add(1)
	return true
}

// leave is the end of what enter and the token began.
func (g *Gate) leave(conn *net.UnixConn) {
	conn.Close()
	g.mu.Lock()
	delete(g.conns, conn)
	g.mu.Unlock()
	<-g.places
	g.handlers.Done()
}

// Close removes the socket, cuts off who is at the gate and waits for the
// callbacks, which therefore must not call it. Calling it again does nothing.
func (g *Gate) Close() error {
	g.shut()
	g.handlers.Wait()
	return nil
}

// shut ends accepting and all conversations.
func (g *Gate) shut() {
	g.once.Do(func() {
		close(g.closed)
		_ = unixmsg.CloseAll(g.listener) // its error would be that the socket is gone already
		g.mu.Lock()
		defer g.mu.Unlock()
		for conn := range g.conns {
			conn.Close()
		}
		g.conns = nil
		switch {
		case g.early == nil:
		case g.earlyServed:
			g.early.end()
		default:
			g.early.close()
		}
		g.removeHeaders()
	})
}
