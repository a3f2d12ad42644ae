// SPDX-License-Identifier: Apache-2.0

package authn

import (
	"context"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"

	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// callOf is the context of one of somebody's calls.
func callOf(who *attunev1.Principal) context.Context {
	return peer.NewContext(context.Background(), &peer.Peer{Addr: &net.UnixAddr{Name: "@", Net: "unix"}, AuthInfo: Info{Principal: who}})
}

// stream is one that does nothing.
type stream struct {
	grpc.ServerStream
	ctx context.Context
}

func (s stream) Context() context.Context { return s.ctx }

// TestCalls: one user's streams and calls take nothing from another's, nor from a node's.
func TestCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var refused atomic.Int32
		c := NewCalls(func(net.Addr, error) { refused.Add(1) })
		alice := callOf(&attunev1.Principal{Name: "alice", Uid: 1, Role: attunev1.Role_ROLE_USER})
		bob := callOf(&attunev1.Principal{Name: "bob", Uid: 2, Role: attunev1.Role_ROLE_USER})
		node := callOf(&attunev1.Principal{Name: "n", Role: attunev1.Role_ROLE_NODE})
		ends := make(chan struct{})
		open := func(ctx context.Context) <-chan error {
			done := make(chan error, 1)
			go func() {
				done <- c.Stream()(nil, stream{ctx: ctx}, nil, func(any, grpc.ServerStream) error { <-ends; return nil })
			}()
			synctest.Wait()
			return done
		}
		ask := func(ctx context.Context) error {
			_, err := c.Unary()(ctx, nil, nil, func(context.Context, any) (any, error) { return nil, nil })
			return err
		}
		for range callsAtOnce {
			open(alice)
		}
		if err := <-open(alice); status.Code(err) != codes.ResourceExhausted {
			t.Errorf("one stream more: %v", err)
		}
		if err := ask(bob); err != nil {
			t.Errorf("bob's call: %v", err)
		}
		for range 10 * callsBurst {
			if err := ask(node); err != nil {
				t.Fatalf("the node's call: %v", err)
			}
		}
		close(ends)
		synctest.Wait()
		began := time.Now()
		for range 2 * callsBurst {
			if err := ask(alice); err != nil {
				t.Fatalf("a call that waits for its turn: %v", err)
			}
		}
		if took := time.Since(began); took < callsEvery*callsBurst {
			t.Errorf("%d calls in %v", 2*callsBurst, took)
		}
		if err := ask(bob); err != nil {
			t.Errorf("bob's call: %v", err)
		}
		var all sync.WaitGroup
		flood := int(held/callsEvery) + 10
		for began = time.Now(); flood > 0; flood-- {
			all.Go(func() { _ = ask(alice) }) // some are refused
		}
		all.Wait()
		if refused.Load() != 11 || time.Since(began) != held {
			t.Errorf("%d were told as refused, want 11, the last after %v", refused.Load(), time.Since(began))
		}
	})
}
