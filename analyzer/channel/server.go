// SPDX-License-Identifier: Apache-2.0

package channel

import (
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/keepalive"

	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

const (
	// HelloPatience is how long a new connection may take to speak HTTP/2: thousands may
	// come at once, after a restart, and to a crowded machine. The server's end waits for
	// those that are still about to.
	HelloPatience = 10 * time.Second
	// pingAfter and pingPatience find out about peers that are gone without a
	// word, as when their node has lost its power.
	pingAfter    = 10 * time.Second
	pingPatience = 10 * time.Second
	// renewal is how long a connection takes new calls: for the next ones a peer
	// connects again, and shows the certificate that it has by then. Calls that
	// run go on.
	renewal = time.Hour
	// readBuffer is what each connection has; gRPC's own is 32 kB, and a site has
	// thousands of connections.
	readBuffer = 8 << 10
	// maxStreams bounds the calls that one connection has at a time: a controller's has
	// two, a command's some.
	maxStreams = 64
	// minPing is how often a peer may do the same.
	minPing = 5 * time.Second
)

// NewServer returns a gRPC server with the limits that the channels need. Who
// may connect is the credentials' business.
func NewServer(creds credentials.TransportCredentials, more ...grpc.ServerOption) *grpc.Server {
	return grpc.NewServer(append([]grpc.ServerOption{
		grpc.Creds(creds), grpc.MaxRecvMsgSize(attunev1.MaxMessage), grpc.ConnectionTimeout(HelloPatience), grpc.WaitForHandlers(true),
		grpc.MaxConcurrentStreams(maxStreams),
		grpc.ReadBufferSize(readBuffer), grpc.InitialWindowSize(attunev1.FlowWindow), grpc.InitialConnWindowSize(attunev1.FlowWindow),
		grpc.KeepaliveParams(keepalive.ServerParameters{Time: pingAfter, Timeout: pingPatience, MaxConnectionAge: renewal}),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: minPing, PermitWithoutStream: true}),
	}, more...)...)
}

// Channels serves the channels of all controllers.
type Channels struct {
	event      eventService
	management managementService
}

// Register adds both services to a server that is not serving yet.
func Register(server grpc.ServiceRegistrar, route Route) *Channels {
	both := &connections{taken: make(map[uint64]*taken)}
	c := &Channels{
		event:      eventService{route: route, connections: both},
		management: managementService{route: route, connections: both},
	}
	attunev1.RegisterEventServiceServer(server, &c.event)
	attunev1.RegisterManagementServiceServer(server, &c.management)
	return c
}

// Wait returns when nothing of the channels is left, after the server's Stop.
func (c *Channels) Wait() { c.management.tasks.Wait() }
