// SPDX-License-Identifier: Apache-2.0

package authn

import (
	"context"
	"fmt"
	"net"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"

	"github.com/attune-hpc/attune/internal/beat"
	"github.com/attune-hpc/attune/internal/quota"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// What a person may ask of a service: calls that run, streams among them, at once; and
// how many begin.
const (
	callsAtOnce = 64
	callsBurst  = 200
	callsEvery  = 50 * time.Millisecond
	// held is how long a call waits for its turn, and one that is refused for its
	// answer: whoever calls in a loop has as many calls as a connection has streams, and
	// each costs less than its refusal would at once.
	held = 5 * time.Second
)

// Calls bounds the calls of each person at a gRPC server. Nodes are not bounded: what
// they ask is on behalf of all their users, whom they bound themselves.
type Calls struct {
	running *quota.AtOnce[string]
	begun   *quota.Rate[string]
	refused func(peer net.Addr, err error)
}

// NewCalls returns the bounds. refused is told what was refused; nil: nobody is.
func NewCalls(refused func(peer net.Addr, err error)) *Calls {
	return &Calls{quota.NewAtOnce[string](callsAtOnce), quota.NewRate[string](callsBurst, callsEvery), refused}
}

// Unary bounds calls with one answer.
func (c *Calls) Unary() grpc.UnaryServerInterceptor {
	return func(ctx context.Context, request any, _ *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
		leave, err := c.enter(ctx)
		if err != nil {
			return nil, err
		}
		defer leave()
		return handler(ctx, request)
	}
}

// Stream bounds streams.
func (c *Calls) Stream() grpc.StreamServerInterceptor {
	return func(service any, stream grpc.ServerStream, _ *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
		leave, err := c.enter(stream.Context())
		if err != nil {
			return err
		}
		defer leave()
		return handler(service, stream)
	}
}

// enter begins a call, whose end is leave. Of whom nobody knows the handler decides.
func (c *Calls) enter(ctx context.Context) (leave func(), err error) {
	who, err := PrincipalFrom(ctx)
	if err != nil || who.GetRole() == attunev1.Role_ROLE_NODE {
		return func() {}, nil
	}
	key := keyOf(who)
	why := ""
	switch {
	case !c.begun.Wait(ctx, key, held):
		why = fmt.Sprintf("calls too often: more than %d each second; wait a moment", time.Second/callsEvery)
	case !c.running.Enter(key):
		beat.Pause(ctx, held)
		why = fmt.Sprintf("has %d calls running, which is the most", callsAtOnce)
	default:
		return func() { c.running.Leave(key) }, nil
	}
	err = status.Errorf(codes.ResourceExhausted, "%s %s", who.GetName(), why)
	if p, ok := peer.FromContext(ctx); ok && c.refused != nil {
		c.refused(p.Addr, err)
	}
	return nil, err
}

// keyOf tells people apart: a certificate may name no id.
func keyOf(who *attunev1.Principal) string { return fmt.Sprintf("%d %s", who.GetUid(), who.GetName()) }
