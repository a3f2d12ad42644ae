// SPDX-License-Identifier: Apache-2.0

package embed

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cespare/xxhash/v2"
	nats "github.com/nats-io/nats-server/v2/server"

	"github.com/attune-hpc/attune/internal/instance"
	"github.com/attune-hpc/attune/internal/registry"
)

const (
	// startWithin bounds the start, which reads what the directory has.
	startWithin = 30 * time.Second
	// greetWithin is how long a new connection may take to say who it is: a whole site
	// comes at once after a restart.
	greetWithin = 10 * time.Second
	// syncEvery is how long a record may be in the kernel only: a crash of the
	// whole host loses no more.
	syncEvery = time.Second
	// pingEvery, with two pings that may be missing, finds a connection that a
	// firewall has forgotten.
	pingEvery = 15 * time.Second
	// maxStore is what the store may take, bytes: for what the disk has is asked when it is
	// full. Left to itself nats-server takes three quarters of what was free at its start
	// for the limit, and of none makes one that holds until the next start.
	maxStore = 1 << 40
	// anyPort is how nats-server writes a port of the kernel's choice.
	anyPort = -1
)

// ErrRunning is returned when another server has the directory.
var ErrRunning = errors.New("another registry uses the directory")

// Server is a running registry.
type Server struct {
	options Options
	log     *slog.Logger
	lock    io.Closer
	gate    *gate
	socket  *socket        // nil: there is none
	closed  chan struct{}  // closed by Close
	tending sync.WaitGroup // of tend
	// nats is what serves now, or served last.
	nats atomic.Pointer[nats.Server]
	// addr and leafAddr are where it listens, each time that it is started.
	addr, leafAddr string
	// broken says that the store has been given up; the logger sets it, nats-server tells
	// nobody else.
	broken atomic.Bool
}

// Start starts a server and returns when it serves. Close ends it.
func Start(o Options) (*Server, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	s := &Server{options: o, log: o.Log.With("component", "registry-server"), gate: newGate(), closed: make(chan struct{})}
	var err error
	if s.lock, err = lock(o.Dir); err != nil {
		return nil, err
	}
	if err := s.start(); err != nil {
		return nil, errors.Join(fmt.Errorf("start registry: %w", err), s.Close())
	}
	return s, nil
}

func (s *Server) start() error {
	s.addr, s.leafAddr = s.options.Listen, s.options.LeafListen
	first, err := s.begin()
	if err != nil {
		return err
	}
	if s.addr != "" {
		s.addr = first.Addr().String()
	}
	if s.leafAddr != "" {
		if s.leafAddr, err = leafAddr(first, s.leafAddr); err != nil {
			return err
		}
	}
	if s.options.Socket != "" {
		if s.socket, err = listen(s.options.Socket, s.nats.Load, s.gate, s.log); err != nil {
			return err
		}
	}
	if s.stores() {
		s.tending.Go(s.tend)
	}
	return nil
}

// begin starts nats-server, in the place of one that has ended.
func (s *Server) begin() (*nats.Server, error) {
	options, err := s.natsOptions()
	if err != nil {
		return nil, err
	}
	next, err := nats.NewServer(options)
	if err != nil {
		return nil, err
	}
	fatal := make(chan string, 1)
	next.SetLoggerV2(newLogger(s.log, fatal, &s.broken), false, false, false)
	s.gate.account = next.GlobalAccount()
	s.nats.Store(next)
	next.Start() // begins what it needs and returns
	if len(fatal) == 0 && next.ReadyForConnections(startWithin) {
		return next, nil
	}
	select {
	case reason := <-fatal:
		return nil, errors.New(reason)
	default:
		return nil, fmt.Errorf("not ready after %v", startWithin)
	}
}

// end ends what serves, and returns when it has ended.
func (s *Server) end() {
	if last := s.nats.Load(); last != nil {
		last.Shutdown()
		last.WaitForShutdown()
	}
}

// natsOptions are the options as nats-server has them.
func (s *Server) natsOptions() (*nats.Options, error) {
	o := s.options
	n := &nats.Options{
		ServerName: serverName(o.Dir), NoSigs: true, NoLog: true, NoSystemAccount: true, DisableJetStreamBanner: true,
		CustomClientAuthentication: s.gate,
		JetStream:                  s.stores() && canBegin(o.Dir),
		JetStreamDomain:            s.domain(),
		StoreDir:                   o.Dir,
		JetStreamMaxStore:          maxStore,
		SyncInterval:               syncEvery,
		DontListen:                 s.addr == "",
		PingInterval:               pingEvery,
		TLSTimeout:                 greetWithin.Seconds(),
		AuthTimeout:                greetWithin.Seconds(),
	}
	if s.addr != "" {
		n.Host, n.Port, _ = address(s.addr)
		n.TLSConfig, n.TLS, n.TLSVerify = o.Identity.ServerConfig(), true, true
	}
	if s.leafAddr != "" {
		n.LeafNode.Host, n.LeafNode.Port, _ = address(s.leafAddr)
		n.LeafNode.TLSConfig = o.Identity.ServerConfig()
		n.LeafNode.NoAdvertise = true
		n.LeafNode.TLSTimeout, n.LeafNode.AuthTimeout = greetWithin.Seconds(), greetWithin.Seconds()
	}
	if len(o.Remotes) > 0 {
		remote := &nats.RemoteLeafOpts{TLS: true, TLSTimeout: greetWithin.Seconds(), TLSConfig: o.Identity.ClientConfig(), IgnoreDiscoveredServers: true}
		for _, text := range o.Remotes {
			at, err := url.Parse(text)
			if err != nil {
				return nil, err
			}
			remote.URLs = append(remote.URLs, at)
		}
		n.LeafNode.Remotes = []*nats.RemoteLeafOpts{remote}
		n.LeafNode.ReconnectInterval = time.Second
	}
	return n, nil
}

// stores says whether the records are kept here, and not at another site.
func (s *Server) stores() bool { return len(s.options.Remotes) == 0 }

// domain is the name of the store; empty: there is none here.
func (s *Server) domain() string {
	if !s.stores() {
		return ""
	}
	return registry.Domain
}

// serverName is another one for each server of a host: two of one name do not
// connect.
func serverName(dir string) string {
	host, _ := os.Hostname() // there need not be one
	return fmt.Sprintf("attune-%s-%x", host, xxhash.Sum64String(dir))
}

// address is splitAddress of what was validated, with a port that nats-server
// understands.
func address(text string) (host string, port int, err error) {
	host, port, err = splitAddress(text)
	if port == 0 {
		port = anyPort
	}
	return host, port, err
}

// URL is where clients on this host find the server.
func (s *Server) URL() string {
	if s.socket != nil {
		return "unix:" + s.options.Socket
	}
	return "tls://" + s.Addr()
}

// Addr is the address that clients in the network find it at; empty: none.
func (s *Server) Addr() string { return s.addr }

// LeafAddr is the address that servers of other sites find it at; empty: none.
func (s *Server) LeafAddr() string { return s.leafAddr }

// leafAddr is the address that one listens at for other sites.
func leafAddr(of *nats.Server, asked string) (string, error) {
	info, err := of.Varz(nil)
	if err != nil {
		return "", err
	}
	host, _, _ := splitAddress(asked)
	return net.JoinHostPort(host, strconv.Itoa(info.LeafNode.Port)), nil
}

// Close ends the server. Clients connect again when there is another.
func (s *Server) Close() error {
	var err error
	close(s.closed)
	s.tending.Wait()
	if s.socket != nil {
		err = s.socket.close()
	}
	s.end()
	return errors.Join(err, s.lock.Close())
}

// lock takes the directory for this process.
func lock(dir string) (io.Closer, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("registry directory: %w", err)
	}
	held, err := instance.Lock(filepath.Join(dir, "lock"))
	if errors.Is(err, instance.ErrTaken) {
		err = fmt.Errorf("%w %s: stop it, or give this one another directory: %w", ErrRunning, dir, err)
	}
	return held, err
}
