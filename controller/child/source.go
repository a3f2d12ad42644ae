// SPDX-License-Identifier: Apache-2.0

package child

import (
	"context"
	"sync/atomic"

	"github.com/attune-hpc/attune/controller/track"
	"github.com/attune-hpc/attune/internal/queue"
)

var _ track.Source = (*source)(nil)

// eventsQueued bounds the events that wait for the controller, as the node bounds
// those that wait for a session.
const eventsQueued = 4096

// source is the track.Source of a session's process: attuned tells it what happens.
type source struct {
	*conversation

	events *queue.Queue[track.Event]
	lost   atomic.Uint64 // before they got here
}

func newSource(c *conversation) *source {
	return &source{conversation: c, events: queue.New[track.Event](eventsQueued)}
}

// put takes an event, or counts it as lost.
func (s *source) put(e track.Event) { s.events.Offer(e) }

// Add implements track.Source.
func (s *source) Add(pid int) error {
	_, err := s.ask(context.Background(), add, pid, noFD, nil)
	return err
}

// Remove implements track.Source.
func (s *source) Remove(pid int) error {
	_, err := s.ask(context.Background(), remove, pid, noFD, nil)
	return err
}

// Lost implements track.Source.
func (s *source) Lost() uint64 { return s.lost.Load() + s.events.Dropped() }

// Run implements track.Source. When ctx ends, what has happened is handed over first.
func (s *source) Run(ctx context.Context, handle func(track.Event)) error {
	for ctx.Err() == nil {
		e, err := s.events.Take(ctx)
		if err != nil {
			break
		}
		handle(e)
	}
	_, err := s.ask(context.WithoutCancel(ctx), drain, nil, noFD, nil)
	for _, e := range s.events.Drain() {
		handle(e)
	}
	return err
}

// Close implements track.Source.
func (s *source) Close() error {
	s.events.Close()
	return nil
}
