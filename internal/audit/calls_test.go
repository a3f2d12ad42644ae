// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/peer"
	"google.golang.org/protobuf/proto"

	"github.com/attune-hpc/attune/internal/authn"
	"github.com/attune-hpc/attune/internal/pki"
	"github.com/attune-hpc/attune/internal/quota"
	waiting "github.com/attune-hpc/attune/internal/testing/patience"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// TestCallsOfAUser: a user's calls have a bounded number of lines, each bounded, and the
// rest is counted; others' have theirs.
func TestCallsOfAUser(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	l := mustOpen(t, Options{Path: path})
	const most, many, bob, ann = 10, 100, 4712, 4711
	l.calls.asked, l.calls.refused = quota.NewRate[user](most, time.Hour), quota.NewRate[user](most, time.Hour)
	long, err := json.Marshal(strings.Repeat("x", maxCall))
	if err != nil {
		t.Fatal(err)
	}
	for range many {
		for _, err := range []error{nil, errors.New("no")} {
			l.WriteCall(Call{Who: authn.OfUser(bob), UID: bob, What: "POST", Began: time.Now(), Message: long, Err: err, Refused: err != nil})
		}
	}
	l.WriteCall(Call{Who: authn.OfUser(0), UID: bob, What: "POST", Began: time.Now()}) // as root does for him
	l.WriteCall(Call{Who: authn.OfUser(ann), UID: ann, What: "POST", Began: time.Now(), Message: json.RawMessage(`"short"`), Code: "OK"})
	for range most + 1 {
		l.WriteCall(Call{Who: authn.OfUser(0), What: "POST", Began: time.Now(), Code: "OK"})
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	lines, more, calls := make(map[Event]map[uint32]int), make(map[Event]uint64), make(map[uint64]bool)
	for _, event := range []Event{Asked, Refused} {
		lines[event] = make(map[uint32]int)
	}
	for _, e := range mustRead(t, path) {
		switch {
		case e.Count > 0:
			more[e.Event] += e.Count
		case e.Event == Answered:
			if !calls[e.Call] {
				t.Errorf("answer to nothing: %+v", e)
			}
		case lines[e.Event] != nil:
			lines[e.Event][*e.Who.UID]++
			calls[e.Number] = true
			if uid := *e.Who.UID; uid == bob && (e.Message != nil || e.Bytes != len(long)) || uid == ann && string(e.Message) != `"short"` {
				t.Errorf("%+v", e)
			}
			if e.Event == Refused && e.Error != "no" {
				t.Errorf("without the reason: %+v", e)
			}
		}
	}
	if lines[Asked][bob] != most || lines[Refused][bob] != most || lines[Asked][ann] != 1 || lines[Asked][0] != most+1 {
		t.Errorf("lines: %v", lines)
	}
	if more[Asked] != many-most+1 || more[Refused] != many-most {
		t.Errorf("counted: %v", more)
	}
}

// TestCallsFillNoLog: what a user asks of a service over gRPC, and sends on a stream, has a
// bounded share of its log, however much it is; a node's all has lines.
func TestCallsFillNoLog(t *testing.T) {
	const most, many = 40, 100
	ann := &attunev1.Principal{Name: "ann", Uid: pki.NoUID, Role: attunev1.Role_ROLE_USER}
	node := &attunev1.Principal{Name: "n1", Uid: pki.NoUID, Role: attunev1.Role_ROLE_NODE}
	long := &attunev1.ManageRequest{Message: &attunev1.ManageRequest_Result{Result: &attunev1.ActionResult{Reason: strings.Repeat("x", maxMessage/2)}}}
	for _, tt := range []struct {
		who    *attunev1.Principal
		listed bool
	}{{authn.OfUser(4712), false}, {ann, false}, {node, true}, {authn.OfUser(0), true}} {
		t.Run(tt.who.GetName(), func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "audit.jsonl")
			l := mustOpen(t, Options{Path: path})
			l.calls.asked = quota.NewRate[user](most, time.Hour)
			ctx := peer.NewContext(t.Context(), &peer.Peer{Addr: &net.TCPAddr{}, AuthInfo: authn.Info{Principal: tt.who}})
			for range many {
				_, err := l.Unary()(ctx, long, &grpc.UnaryServerInfo{FullMethod: "/S/Ask"}, func(context.Context, any) (any, error) { return nil, nil })
				if err != nil {
					t.Fatal(err)
				}
			}
			stream := fed{ctx: ctx, message: long}
			if err := l.Stream()(nil, stream, &grpc.StreamServerInfo{FullMethod: "/S/Manage"}, func(_ any, stream grpc.ServerStream) error {
				for range many {
					if err := stream.RecvMsg(&attunev1.ManageRequest{}); err != nil {
						return err
					}
				}
				return nil
			}); err != nil {
				t.Fatal(err)
			}
			if err := l.Close(); err != nil {
				t.Fatal(err)
			}
			var bytes int
			var counted uint64
			for _, e := range mustRead(t, path) {
				bytes, counted = bytes+len(e.Message), counted+e.Count
				if e.Event == Received && (e.Who == nil || e.Who.Name != tt.who.GetName()) {
					t.Errorf("from whom? %+v", e)
				}
			}
			if listed := counted == 0 && bytes > 2*many*maxMessage/2; listed != tt.listed || !listed && bytes > most*maxCall {
				t.Errorf("%d bytes of messages, %d counted", bytes, counted)
			}
		})
	}
}

// fed is a stream on which the same message comes again and again.
type fed struct {
	grpc.ServerStream
	ctx     context.Context
	message proto.Message
}

func (s fed) Context() context.Context { return s.ctx }

func (s fed) RecvMsg(m any) error {
	proto.Merge(m.(proto.Message), s.message)
	return nil
}

// TestCountedCallsAreTold: those without a line are told when it is time, though nobody calls again.
func TestCountedCallsAreTold(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	l := mustOpen(t, Options{Path: path})
	const bob = 4712
	l.calls.asked = quota.NewRate[user](1, time.Hour)
	for range 5 {
		l.WriteCall(Call{Who: authn.OfUser(bob), UID: bob, What: "POST", Began: time.Now(), Code: "OK"})
	}
	l.mu.Lock()
	l.calls.since = time.Now().Add(-tallyPeriod)
	l.mu.Unlock()
	waiting.Until(t, "the count", func() bool {
		entries, _ := read(t, path) // a line may be on its way
		return slices.ContainsFunc(entries, func(e Entry) bool { return e.Count == 4 })
	})
}
