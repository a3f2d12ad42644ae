// SPDX-License-Identifier: Apache-2.0

package authn

import (
	"context"
	"net"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/health"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"

	"github.com/attune-hpc/attune/internal/pki"
	"github.com/attune-hpc/attune/internal/testing/pkitest"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// TestThreeLifetimes: while both sides' certificates are renewed, a stream that began by
// the first ones goes on, and each call on a new connection is answered.
func TestThreeLifetimes(t *testing.T) {
	const life, renewed = time.Hour, 40 * time.Minute
	site, clock := pkitest.New(t), new(pkitest.Clock)
	issue := func(name string, at time.Duration) pki.Files {
		return site.Issue(t, pki.Request{Name: name, Role: attunev1.Role_ROLE_NODE, Hosts: []string{"127.0.0.1"}, Valid: at + life})
	}
	server := pkitest.OpenAt(t, issue("server", 0), clock)
	creds := New(Options{Identity: pkitest.OpenAt(t, issue("node", 0), clock)})
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	known := func(ctx context.Context, request any, _ *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
		if _, err := InfoFrom(ctx); err != nil {
			return nil, err
		}
		return handler(ctx, request)
	}
	state := health.NewServer()
	s := grpc.NewServer(grpc.Creds(New(Options{Identity: server})), grpc.UnaryInterceptor(known))
	healthv1.RegisterHealthServer(s, state)
	done := make(chan error, 1)
	go func() { done <- s.Serve(listener) }()
	defer func() { s.Stop(); <-done }()
	conn, err := grpc.NewClient(listener.Addr().String(), grpc.WithTransportCredentials(creds))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	stream, err := healthv1.NewHealthClient(conn).Watch(t.Context(), &healthv1.HealthCheckRequest{})
	if err != nil {
		t.Fatal(err)
	}
	first := server.Leaf()
	want := []healthv1.HealthCheckResponse_ServingStatus{healthv1.HealthCheckResponse_SERVING, healthv1.HealthCheckResponse_NOT_SERVING}
	for n := range 6 {
		at := time.Duration(n) * renewed
		clock.Set(at)
		issue("server", at)
		issue("node", at)
		state.SetServingStatus("", want[n%2]) // at first it is that
		if got, err := stream.Recv(); err != nil || got.GetStatus() != want[n%2] {
			t.Fatalf("after %v the stream says %v, %v; want %v", at, got, err, want[n%2])
		}
		if err := check(t, listener.Addr().String(), creds); err != nil {
			t.Errorf("a call after %v: %v", at, err)
		}
	}
	if end := clock.Now().Sub(first.NotAfter); end < 2*life-time.Minute {
		t.Errorf("the first certificate has ended %v ago", end)
	}
}
