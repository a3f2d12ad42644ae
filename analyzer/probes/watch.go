// SPDX-License-Identifier: Apache-2.0

package probes

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/attune-hpc/attune/analyzer/report"
	"github.com/attune-hpc/attune/analyzer/session"
	"github.com/attune-hpc/attune/internal/queue"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// watchQueue bounds the messages that wait for a client that watches.
const watchQueue = 256

// errEnded is the end of a session that has processes to watch yet, or that another Analyzer
// goes on with.
var errEnded = status.Error(codes.Unavailable, session.ErrEnded.Error())

// watch is one client that watches.
type watch struct {
	queue *queue.Queue[*attunev1.WatchProbesResponse] // closed when nothing is left to watch
	told  uint64                                      // how many lost messages it was told of; serve's own
}

// push queues a message unless the client does not keep up.
func (w *watch) push(m *attunev1.WatchProbesResponse) { w.queue.Offer(m) }

// serve sends what is queued until the client leaves, or the queue is closed, as it is when
// ended is.
func (w *watch) serve(stream grpc.ServerStreamingServer[attunev1.WatchProbesResponse], ended <-chan struct{}) error {
	ctx, cancel := context.WithCancel(stream.Context())
	var closer sync.WaitGroup
	defer closer.Wait()
	defer cancel()
	closer.Go(func() {
		select {
		case <-ended:
			w.queue.Close()
		case <-ctx.Done():
		}
	})
	for {
		m, err := w.queue.Take(ctx)
		if err != nil {
			return nil // it has left, or all is said
		}
		if err := w.send(stream, m); err != nil {
			return err
		}
	}
}

func (w *watch) send(stream grpc.ServerStreamingServer[attunev1.WatchProbesResponse], m *attunev1.WatchProbesResponse) error {
	if lost := w.queue.Dropped() - w.told; lost > 0 {
		w.told += lost
		if err := stream.Send(&attunev1.WatchProbesResponse{Event: &attunev1.WatchProbesResponse_Lost{Lost: lost}}); err != nil {
			return err
		}
	}
	return stream.Send(m)
}

// WatchProbes implements the service. It ends when nothing is left to watch, or with the
// session.
func (s service) WatchProbes(r *attunev1.WatchProbesRequest, stream grpc.ServerStreamingServer[attunev1.WatchProbesResponse]) error {
	if len(r.GetPoints()) > 0 {
		if err := check(r.GetPoints()); err != nil {
			return err
		}
	}
	w := &watch{queue: queue.New[*attunev1.WatchProbesResponse](watchQueue)}
	own := &wishes{
		account: s.account, name: fmt.Sprintf("%s %d", report.WatchAsker, s.watchers.Add(1)), hear: w.push, empty: w.queue.Close,
	}
	defer s.session.Leave(own.name)
	err := s.session.Ask(stream.Context(), own.name, own, func() (*attunev1.Want, error) {
		images, err := s.images(r.GetHost(), r.GetPids())
		if err != nil {
			return nil, err
		}
		if len(r.GetPoints()) > 0 {
			return &attunev1.Want{Points: own.missing(r.GetPoints(), images, r.GetFollow())}, nil
		}
		return s.wantLasting(r)
	})
	switch {
	case errors.Is(err, session.ErrEnded):
		return errEnded
	case err != nil:
		return err
	}
	if own.left.Load() == 0 { // the processes have ended meanwhile
		w.queue.Close()
	}
	if err := w.serve(stream, s.session.Done()); err != nil {
		return err
	}
	if own.left.Load() > 0 && stream.Context().Err() == nil {
		return errEnded
	}
	return nil
}

// wantLasting wants what AddProbes has put into the processes.
func (s service) wantLasting(r *attunev1.WatchProbesRequest) (*attunev1.Want, error) {
	out := &wishes{list: s.chosen(r.GetHost(), r.GetPids())}
	if len(out.list) == 0 {
		return nil, status.Error(codes.FailedPrecondition, "no measure point was added to these processes: say what to watch")
	}
	return out.want(), nil
}
