// SPDX-License-Identifier: Apache-2.0

package link

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"sync/atomic"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/encoding"
	grpcproto "google.golang.org/grpc/encoding/proto"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/proto"

	"github.com/attune-hpc/attune/internal/queue"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

const (
	// eventQueue is how many messages may wait for the event channel: at
	// 4096 records a message that is half a million records.
	eventQueue = 128
	// answerQueue is how many answers may wait for the management channel.
	answerQueue = 1024
)

// carried stands before the address of an Analyzer that Peer.Dial leads to.
const carried = "passthrough:///"

// connection is one to an Analyzer: both channels, with what waits for
// them. Events that wait when it breaks, or are on their way, are undelivered.
type connection struct {
	number                uint64 // by which the Analyzer knows that both are of one connection
	eventConn, manageConn *grpc.ClientConn
	events                *queue.Queue[*attunev1.PublishRequest]
	answers               *queue.Queue[*attunev1.ManageRequest]
	underway              underway      // events that were sent
	ready                 chan struct{} // closed when the event channel has said hello
	opened                chan struct{} // closed when all but news of changes may leave
	broken                chan struct{} // closed by serve when it returns
	heard                 queue.Bell    // rung when the Analyzer shows that it is there
	spoken                atomic.Bool   // it did
}

// dial prepares both connections without waiting for the Analyzer.
func dial(peer Peer) (*connection, error) {
	l := &connection{
		number:  rand.Uint64() | 1, // 0 is none
		events:  queue.New[*attunev1.PublishRequest](eventQueue),
		answers: queue.New[*attunev1.ManageRequest](answerQueue),
		ready:   make(chan struct{}),
		opened:  make(chan struct{}),
		broken:  make(chan struct{}),
		heard:   queue.NewBell(),
	}
	var err error
	if l.eventConn, err = Connect(peer); err != nil {
		return nil, err
	}
	if l.manageConn, err = Connect(peer); err != nil {
		return nil, errors.Join(err, l.eventConn.Close())
	}
	return l, nil
}

// Connect prepares a connection to an Analyzer without waiting for it. The caller
// closes it.
func Connect(peer Peer) (*grpc.ClientConn, error) {
	if peer.Credentials == nil {
		peer.Credentials = insecure.NewCredentials()
	}
	target, options := peer.Address, []grpc.DialOption(nil)
	if peer.Dial != nil { // the name is nothing to look up
		target = carried + peer.Address
		options = append(options, grpc.WithAuthority("analyzer"), grpc.WithContextDialer(
			func(ctx context.Context, _ string) (net.Conn, error) { return peer.Dial(ctx) }))
	}
	// A service configuration would be asked of the name server for, for seconds
	// where a node has none.
	conn, err := grpc.NewClient(target, append(options,
		grpc.WithTransportCredentials(peer.Credentials), grpc.WithDisableServiceConfig(),
		grpc.WithDefaultCallOptions(
			grpc.MaxCallRecvMsgSize(attunev1.MaxMessage), grpc.ForceCodecV2(textCodec{encoding.GetCodecV2(grpcproto.Name)})),
		grpc.WithInitialWindowSize(attunev1.FlowWindow), grpc.WithInitialConnWindowSize(attunev1.FlowWindow))...)
	if err != nil {
		return nil, fmt.Errorf("connect to analyzer %s: %w", peer.Address, err)
	}
	return conn, nil
}

// telling has what was sent count as heard until the connection is open: what the Analyzer
// says waits for that, and an Analyzer that is not there does not take much.
func (l *connection) telling() {
	select {
	case <-l.opened:
	default:
		l.heard.Ring()
	}
}

// finish lets no more messages in; those that wait are carried yet.
func (l *connection) finish() {
	l.events.Close()
	l.answers.Close()
}

// textCodec is gRPC's own, but that it encodes what has texts that are not UTF-8, too:
// gRPC ends a channel over one such message. What a program, a file or a symbol is called
// gets into messages in many places, so this is looked after in one.
type textCodec struct{ encoding.CodecV2 }

// Marshal implements [encoding.CodecV2].
func (c textCodec) Marshal(v any) (mem.BufferSlice, error) {
	message, is := v.(proto.Message)
	if !is {
		return c.CodecV2.Marshal(v)
	}
	return attunev1.Encode(message, func(m proto.Message) (mem.BufferSlice, error) { return c.CodecV2.Marshal(m) })
}
