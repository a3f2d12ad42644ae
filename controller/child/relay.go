// SPDX-License-Identifier: Apache-2.0

package child

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"os"
	"slices"
	"sync"
	"sync/atomic"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/attune-hpc/attune/controller"
	"github.com/attune-hpc/attune/controller/link"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// maxRelays bounds the connections of a session at one time: it needs two, and two
// more while those before are closed.
const maxRelays = 4

// relays are connections of a session's process to the Analyzer. They carry the two
// channels and nothing else, for that session only: attuned, whom the Analyzer takes
// for the controller, looks at who says hello.
type relays struct {
	config  controller.Config
	relayed *atomic.Int64 // connections of all sessions

	work sync.WaitGroup
	mu   sync.Mutex // guards what follows; a leaf lock
	all  map[*grpc.Server]bool
}

func newRelays(c controller.Config, relayed *atomic.Int64) *relays {
	return &relays{config: c, relayed: relayed, all: make(map[*grpc.Server]bool)}
}

// close ends all connections.
func (r *relays) close() {
	r.mu.Lock()
	servers := slices.Collect(maps.Keys(r.all))
	r.mu.Unlock()
	for _, server := range servers {
		server.Stop()
	}
	r.work.Wait()
}

// open makes a connection to an Analyzer and returns the process' end of it.
func (r *relays) open(peer link.Peer) (*os.File, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.all) >= maxRelays {
		return nil, fmt.Errorf("the session has %d connections to its analyzer, which is the most", maxRelays)
	}
	analyzer, err := link.Connect(peer)
	if err != nil {
		return nil, err
	}
	own, other, err := textPair()
	if err != nil {
		return nil, errors.Join(err, analyzer.Close())
	}
	one := &relay{config: r.config, analyzer: analyzer}
	server := grpc.NewServer(grpc.UnknownServiceHandler(one.carry), grpc.ForceServerCodec(bytesOnly{}),
		grpc.MaxRecvMsgSize(attunev1.MaxMessage), grpc.MaxConcurrentStreams(maxRelays),
		grpc.InitialWindowSize(attunev1.FlowWindow), grpc.InitialConnWindowSize(attunev1.FlowWindow))
	r.all[server] = true
	r.relayed.Add(1)
	r.work.Go(func() {
		_ = server.Serve(newOneConn(own)) // it ends with the connection
		server.Stop()
		_ = analyzer.Close() // nobody needs it any more
		r.relayed.Add(-1)
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(r.all, server)
	})
	return other, nil
}

// relay is one connection.
type relay struct {
	config   controller.Config
	analyzer *grpc.ClientConn
}

// carry carries a channel: what the process sends to the Analyzer, and back.
func (r *relay) carry(_ any, from grpc.ServerStream) error {
	method, _ := grpc.MethodFromServerStream(from)
	manages := method == attunev1.ManagementService_Manage_FullMethodName
	if !manages && method != attunev1.EventService_Publish_FullMethodName {
		return status.Errorf(codes.PermissionDenied, "the process of a session may not call %s", method)
	}
	var hello []byte
	if err := from.RecvMsg(&hello); err != nil {
		return err
	}
	if err := r.check(manages, hello); err != nil {
		return status.Error(codes.PermissionDenied, err.Error())
	}
	ctx, cancel := context.WithCancel(from.Context())
	defer cancel()
	to, err := r.analyzer.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true, ClientStreams: true}, method, grpc.ForceCodec(bytesOnly{}))
	if err != nil {
		return err
	}
	go func() { // ends with the stream
		if forward(hello, from, to) != nil {
			cancel()
		}
	}()
	for {
		var m []byte
		if err := to.RecvMsg(&m); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		if manages {
			r.note(m)
		}
		if err := from.SendMsg(&m); err != nil {
			return err
		}
	}
}

// forward carries a message to the Analyzer, and those that come behind it.
func forward(m []byte, from grpc.ServerStream, to grpc.ClientStream) error {
	for to.SendMsg(&m) == nil { // else carry hears why
		m = nil
		if err := from.RecvMsg(&m); errors.Is(err, io.EOF) {
			return to.CloseSend()
		} else if err != nil {
			return err
		}
	}
	return nil
}

// note tells of a request that touches processes before they can be touched.
func (r *relay) note(text []byte) {
	m := new(attunev1.ManageResponse)
	if proto.Unmarshal(text, m) == nil && (m.GetApply() != nil || m.GetUndo() != nil || m.GetEnd() != nil) {
		r.config.Asked(m)
	}
}

// check says whether a hello is the session's own.
func (r *relay) check(manages bool, hello []byte) error {
	var said greeting
	if manages {
		m := new(attunev1.ManageRequest)
		if err := proto.Unmarshal(hello, m); err != nil {
			return err
		}
		said = m.GetHello()
		if mode := m.GetHello().GetMode(); mode != r.config.Session.Mode {
			return fmt.Errorf("the session's mode is not %q", mode)
		}
	} else {
		m := new(attunev1.PublishRequest)
		if err := proto.Unmarshal(hello, m); err != nil {
			return err
		}
		said = m.GetHello()
	}
	s := r.config.Session
	if said.GetControllerId() != r.config.ID || said.GetRegistration() != s.Registration ||
		!proto.Equal(said.GetJob(), s.Job) || !proto.Equal(said.GetUser(), s.User) {
		return errors.New("the process of a session says hello for another one")
	}
	return nil
}

// greeting is what both channels begin with.
type greeting interface {
	GetControllerId() string
	GetRegistration() string
	GetJob() *attunev1.Job
	GetUser() *attunev1.Principal
}

// bytesOnly is a gRPC codec that leaves messages as they are.
type bytesOnly struct{}

// Name implements encoding.Codec.
func (bytesOnly) Name() string { return "proto" }

// Marshal implements encoding.Codec.
func (bytesOnly) Marshal(v any) ([]byte, error) { return *v.(*[]byte), nil }

// Unmarshal implements encoding.Codec.
func (bytesOnly) Unmarshal(data []byte, v any) error {
	*v.(*[]byte) = slices.Clone(data)
	return nil
}

// oneConn is a listener to which one connection has come.
type oneConn struct {
	conn   chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func newOneConn(conn net.Conn) *oneConn {
	l := &oneConn{conn: make(chan net.Conn, 1), closed: make(chan struct{})}
	l.conn <- &closing{Conn: conn, listener: l}
	return l
}

// Accept implements net.Listener.
func (l *oneConn) Accept() (net.Conn, error) {
	select {
	case conn := <-l.conn:
		return conn, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener.
func (l *oneConn) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

// Addr implements net.Listener.
func (*oneConn) Addr() net.Addr { return &net.UnixAddr{Net: "unix"} }

// closing is a connection whose end is that of its listener.
type closing struct {
	net.Conn

	listener *oneConn
}

// Close implements net.Conn.
func (c *closing) Close() error { return errors.Join(c.listener.Close(), c.Conn.Close()) }
