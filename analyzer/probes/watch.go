// SPDX-License-Identifier: Apache-2.0

package probes

import (
	"google.golang.org/grpc"

	"github.com/attune-hpc/attune/internal/queue"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// watch is one client that watches.
type watch struct {
	queue *queue.Queue[*attunev1.WatchProbesResponse]
	told  uint64 // how many lost messages it was told of; serve's own
}

// push queues a message unless the client does not keep up.
func (w *watch) push(m *attunev1.WatchProbesResponse) { w.queue.Offer(m) }

// serve sends what is queued until the client leaves or nothing is left to watch.
func (w *watch) serve(stream grpc.ServerStreamingServer[attunev1.WatchProbesResponse], done func() bool) error {
	for {
		m, err := w.queue.Take(stream.Context())
		if err != nil {
			return nil // it has left
		}
		if err := w.send(stream, m); err != nil {
			return err
		}
		if w.queue.Len() == 0 && done() {
			return nil
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
