// SPDX-License-Identifier: Apache-2.0

package analyzer

import (
	"context"
	"errors"
	"fmt"
	"net"

	"google.golang.org/grpc"

	"github.com/attune-hpc/attune/analyzer/channel"
	"github.com/attune-hpc/attune/internal/authn"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// server serves one session.
type server struct {
	grpc     *grpc.Server
	channels *channel.Channels
}

// Serve serves the channels on a Unix socket until ctx ends or Stop, and then
// returns nil. Peers must be the present user or root. It closes the listener.
func (a *Analyzer) Serve(ctx context.Context, lis net.Listener) error {
	s := a.newServer()
	if s == nil {
		return lis.Close()
	}
	stop := context.AfterFunc(ctx, s.grpc.Stop)
	defer stop()
	err := s.grpc.Serve(lis)
	if err == nil || errors.Is(err, grpc.ErrServerStopped) {
		return nil
	}
	return fmt.Errorf("serve the channels: %w", err)
}

// newServer returns a server that Stop stops, or nil after it.
func (a *Analyzer) newServer() *server {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.stopped {
		return nil
	}
	s := &server{grpc: channel.NewServer(authn.New(authn.Options{Admit: authn.OwnAndRoot}))}
	s.channels = channel.Register(s.grpc, channel.To(a.session))
	attunev1.RegisterProbeServiceServer(s.grpc, a.probes.For(func(uint32) bool { return true })) // peers are the user and root
	a.servers = append(a.servers, s)
	return s
}

// stopServers ends the channels that Serve serves.
func (a *Analyzer) stopServers() {
	a.mu.Lock()
	a.stopped = true
	servers := a.servers
	a.mu.Unlock()
	for _, s := range servers {
		s.grpc.Stop()
		s.channels.Wait()
	}
}
