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

// server serves the channels of one session from serve on. Nobody calls serve for a site's
// session: the service serves those.
type server struct {
	session *session.Session
	probes  *probes.Probes

	mu       sync.Mutex // leaf lock; guards what follows
	grpc     *grpc.Server
	channels *channel.Channels
	stopped  bool
}

// serve serves a listener, which it closes, until ctx ends or stop. It is called once.
func (s *server) serve(ctx context.Context, lis net.Listener) error {
	if !s.begin() {
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

// begin makes the server; false: stop was called.
func (s *server) begin() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped {
		return false
	}
	s.grpc = channel.NewServer(authn.New(authn.Options{Admit: authn.OwnAndRoot}))
	s.channels = channel.Register(s.grpc, channel.To(s.session))
	attunev1.RegisterProbeServiceServer(s.grpc, s.probes.For(func(uint32) bool { return true })) // peers are the user and root
	return true
}

// stop ends the serving and waits for its end.
func (s *server) stop() {
	s.mu.Lock()
	s.stopped = true
	begun := s.grpc != nil
	s.mu.Unlock()
	if begun {
		s.grpc.Stop()
		s.channels.Wait()
	}
}
