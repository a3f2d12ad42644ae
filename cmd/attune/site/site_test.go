// SPDX-License-Identifier: Apache-2.0

package site

import (
	"context"
	"net"
	"path/filepath"
	"sync/atomic"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/attune-hpc/attune/internal/authn"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// dying is an Analyzer that is away before it has answered.
type dying struct {
	attunev1.UnimplementedSessionServiceServer

	server *grpc.Server
	asked  *atomic.Int32
}

func (d *dying) StartSession(ctx context.Context, _ *attunev1.StartSessionRequest) (*attunev1.StartSessionResponse, error) {
	d.asked.Add(1)
	go d.server.Stop() // it waits for this call
	<-ctx.Done()
	return nil, ctx.Err()
}

// TestAskedOnce: an Analyzer that cannot be reached is passed over, or that does not
// answer; what one has heard is not asked of another one.
func TestAskedOnce(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	addresses := []string{"unix:" + filepath.Join(dir, "nobody"), "unix:" + filepath.Join(dir, "silent")}
	silent, err := net.Listen("unix", filepath.Join(dir, "silent"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = silent.Close() })
	var asked atomic.Int32
	for _, name := range []string{"first", "second"} {
		path := filepath.Join(dir, name)
		listener, err := net.Listen("unix", path)
		if err != nil {
			t.Fatal(err)
		}
		server := grpc.NewServer(grpc.Creds(authn.New(authn.Options{})))
		attunev1.RegisterSessionServiceServer(server, &dying{server: server, asked: &asked})
		go func() { _ = server.Serve(listener) }()
		t.Cleanup(server.Stop)
		addresses = append(addresses, "unix:"+path)
	}
	ctx, cancel := context.WithTimeout(t.Context(), sitePatience/2) // gRPC itself waits longer for the silent one
	defer cancel()
	_, err = askAt(ctx, addresses, func(ctx context.Context, c *Client) (*attunev1.StartSessionResponse, error) {
		return c.StartSession(ctx, &attunev1.StartSessionRequest{})
	})
	if n := asked.Load(); status.Code(err) != codes.Unavailable || n != 1 {
		t.Errorf("asked %d times, %v", n, err)
	}
}

// talkative is an Analyzer with more than gRPC takes in an answer by itself.
type talkative struct {
	attunev1.UnimplementedSessionServiceServer
}

func (talkative) ShowSession(context.Context, *attunev1.ShowSessionRequest) (*attunev1.ShowSessionResponse, error) {
	return &attunev1.ShowSessionResponse{Report: make([]byte, 5<<20)}, nil
}

// TestLargeAnswer: a report of thousands of processes arrives.
func TestLargeAnswer(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "s")
	listener, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer(grpc.Creds(authn.New(authn.Options{})))
	attunev1.RegisterSessionServiceServer(server, talkative{})
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(server.Stop)
	c, err := Dial("unix:" + path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.close)
	if _, err := c.ShowSession(t.Context(), &attunev1.ShowSessionRequest{}); err != nil {
		t.Error(err)
	}
}
