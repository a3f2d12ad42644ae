// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/attune-hpc/attune/internal/authn"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

const (
	// patience is how long an answer waits for its line to be on disk.
	patience = time.Second
	// maxAnswer bounds an answer in a line, bytes: most are lists that can be
	// asked for again.
	maxAnswer = 2 << 10
)

// Unary writes each request before it is handled, and its answer before it is
// given; that one is on disk by then, unless the disk is slow or full. Of a user who
// asks for too much the rest is counted. Whoever is not known is refused.
func (l *Log) Unary() grpc.UnaryServerInterceptor {
	return func(ctx context.Context, request any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
		who, asked, err := l.asks(ctx, info.FullMethod)
		if err != nil {
			return nil, err
		}
		asked.Message, asked.Bytes = message(request, maxMessage)
		call, listed := l.writeOf(who, asked)
		answer, err := handler(ctx, request)
		if !listed {
			return answer, err
		}
		answered := Entry{Call: call}
		if err == nil {
			answered.Message, answered.Bytes = message(answer, maxAnswer)
		}
		l.answer(ctx, answered, info.FullMethod, err)
		return answer, err
	}
}

// Stream writes when a stream is opened, how it ended, and those messages on it
// that ask for something or answer that: the rest is data, or goes on all the
// time. Of a user who asks for too much the rest is counted. Whoever is not known is
// refused.
func (l *Log) Stream() grpc.StreamServerInterceptor {
	return func(service any, stream grpc.ServerStream, info *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
		who, asked, err := l.asks(stream.Context(), info.FullMethod)
		if err != nil {
			return err
		}
		var listed bool
		line := asked
		line.Call, listed = l.writeOf(who, asked)
		err = handler(service, &noted{ServerStream: stream, log: l, who: who, line: line})
		if listed {
			l.answer(stream.Context(), Entry{Call: line.Call}, info.FullMethod, err)
		}
		return err
	}
}

// asks begins the line of a call, which is one of who's.
func (l *Log) asks(ctx context.Context, method string) (who user, asked Entry, err error) {
	info, err := authn.InfoFrom(ctx)
	if err != nil {
		p, _ := peer.FromContext(ctx)
		if p != nil {
			l.Refused(p.Addr, fmt.Errorf("%s: %w", method, err))
		}
		return user{}, Entry{}, err
	}
	e := Entry{Event: Asked, Who: Of(info.Principal), What: method}
	if p, ok := peer.FromContext(ctx); ok {
		e.From = address(p.Addr)
	}
	if info.PID > 0 {
		e.From = fmt.Sprintf("pid %d", info.PID)
	}
	return userOf(info.Principal), e, nil
}

func (l *Log) answer(ctx context.Context, e Entry, method string, err error) {
	e.Event, e.What, e.Code = Answered, method, status.Code(err).String()
	if err != nil {
		e.Error = status.Convert(err).Message()
		if ctx.Err() != nil && status.Code(err) == codes.Unknown {
			e.Code = status.FromContextError(ctx.Err()).Code().String()
		}
	}
	l.Write(e)
	// The caller may have gone, its line is waited for all the same.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
	defer cancel()
	_ = l.Sync(ctx) // Trouble has it; the answer is given nevertheless
}

// noted is a stream whose messages are noted.
type noted struct {
	grpc.ServerStream
	log    *Log
	who    user
	line   Entry       // what each of their lines has
	begun  atomic.Bool // the first message was received
	wanted points      // by the messages sent
}

// RecvMsg receives a message.
func (s *noted) RecvMsg(m any) error {
	if err := s.ServerStream.RecvMsg(m); err != nil {
		return err
	}
	if first := !s.begun.Swap(true); first || worth(m) {
		s.write(Received, m)
	}
	return nil
}

// SendMsg sends a message.
func (s *noted) SendMsg(m any) error {
	if changed := s.wanted.changed(m); worth(changed) {
		s.write(Sent, changed)
	}
	return s.ServerStream.SendMsg(m)
}

func (s *noted) write(event Event, m any) {
	e := s.line
	e.Event = event
	e.Message, e.Bytes = message(m, maxMessage)
	s.log.writeOf(s.who, e)
}

// message is one as lines have it, or its size if it is larger than limit.
func message(m any, limit int) (json.RawMessage, int) {
	p, ok := m.(proto.Message)
	if !ok {
		return nil, 0
	}
	if size := proto.Size(p); size > limit {
		return nil, size
	}
	data, err := protojson.MarshalOptions{UseProtoNames: true}.Marshal(p)
	if err != nil {
		return nil, proto.Size(p)
	}
	var compact bytes.Buffer // protojson puts in blanks at random
	if err := json.Compact(&compact, data); err != nil || compact.Len() > 2*limit {
		return nil, proto.Size(p)
	}
	return compact.Bytes(), 0
}

// worth says whether a message of a stream asks for something that touches a
// process, or answers that. The first one is noted in any case: it says whom a
// stream is for.
func worth(m any) bool {
	switch m := m.(type) {
	case *attunev1.ManageRequest:
		return m.GetResult() != nil
	case *attunev1.ManageResponse:
		return m.GetApply() != nil || m.GetUndo() != nil || len(m.GetWant().GetPoints()) > 0
	}
	return false
}

// points are those that were wanted last on a stream, by index.
type points map[uint32]*attunev1.PointWant

// changed returns a message as it is to be noted: of a want, which is whole each time,
// the points that come, and without anything but their index those that go.
func (ps *points) changed(m any) any {
	request, _ := m.(*attunev1.ManageResponse)
	if request.GetWant() == nil {
		return m
	}
	changed, now := &attunev1.Want{}, points{}
	for _, p := range request.GetWant().GetPoints() {
		now[p.GetIndex()] = p
		if !proto.Equal((*ps)[p.GetIndex()], p) {
			changed.Points = append(changed.Points, p)
		}
	}
	for index := range *ps {
		if now[index] == nil {
			changed.Points = append(changed.Points, &attunev1.PointWant{Index: index})
		}
	}
	*ps = now
	return &attunev1.ManageResponse{RequestId: request.GetRequestId(), Request: &attunev1.ManageResponse_Want{Want: changed}}
}
