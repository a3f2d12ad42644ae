// SPDX-License-Identifier: Apache-2.0

package discover

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/attune-hpc/attune/controller/track"
)

// viewQueue bounds the events that wait for one listener. One that is slower
// loses events, and hears of it: it must not hold up the others.
const viewQueue = 4096

// view is a track.Source of some of the node's processes.
type view struct {
	hub     *hub
	id      uint32
	events  chan track.Event
	dropped atomic.Uint64
	close   sync.Once
	closed  chan struct{}
}

// put hands over an event, or counts it as lost.
func (v *view) put(e track.Event) {
	select {
	case v.events <- e:
	default:
		v.dropped.Add(1)
	}
}

// Add implements track.Source.
func (v *view) Add(pid int) error { return v.hub.add(pid, v.id) }

// Remove implements track.Source.
func (v *view) Remove(pid int) error { return v.hub.remove(pid, v.id) }

// Lost implements track.Source. What the stream loses may have been anybody's.
func (v *view) Lost() uint64 { return v.dropped.Load() + v.hub.lost() }

// Run implements track.Source. When ctx ends, what is queued is handed over
// first.
func (v *view) Run(ctx context.Context, handle func(track.Event)) error {
	for {
		select {
		case e := <-v.events:
			handle(e)
			continue
		case <-ctx.Done():
		case <-v.closed:
		}
		for range len(v.events) { // more may come for as long as processes fork
			handle(<-v.events)
		}
		return nil
	}
}

// Close implements track.Source: its processes are nobody's any more.
func (v *view) Close() (err error) {
	v.close.Do(func() {
		close(v.closed)
		err = v.hub.drop(v)
	})
	return err
}
