// SPDX-License-Identifier: Apache-2.0

package analyzer

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"

	"google.golang.org/grpc"

	"github.com/attune-hpc/attune/analyzer/channel"
	"github.com/attune-hpc/attune/analyzer/probes"
	"github.com/attune-hpc/attune/analyzer/session"
	"github.com/attune-hpc/attune/internal/authn"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// server serves one session.
type server struct {
	grpc     *grpc.Server
	channels *channel.Channels
}

// servers are those of one session, which end together.
type servers struct {
	session *session.Session
	probes  *probes.Probes

	mu      sync.Mutex // leaf lock; guards what follows
	all     []*server
	stopped bool
}

// serve serves a listener, which it closes, until ctx or the servers end.
func (s *servers) serve(ctx context.Context, lis net.Listener) error {
	server := s.begin()
	if server == nil {
		return lis.Close()
	}
	stop := context.AfterFunc(ctx, server.grpc.Stop)
	defer stop()
	err := server.grpc.Serve(lis)
	if err == nil || errors.Is(err, grpc.ErrServerStopped) {
		return nil
	}
	return fmt.Errorf("serve the channels: %w", err)
}

// begin returns a server, or nil after stop.
func (s *servers) begin() *server {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped {
		return nil
	}
	one := &server{grpc: channel.NewServer(authn.New(authn.Options{Admit: authn.OwnAndRoot}))}
	one.channels = channel.Register(one.grpc, channel.To(s.session))
	attunev1.RegisterProbeServiceServer(one.grpc, s.probes.For(func(uint32) bool { return true })) // peers are the user and root
	s.all = append(s.all, one)
	return one
}

// stop ends them and waits for them.
func (s *servers) stop() {
	s.mu.Lock()
	s.stopped = true
	all := s.all
	s.mu.Unlock()
	for _, one := range all {
		one.grpc.Stop()
		one.channels.Wait()
	}
}
