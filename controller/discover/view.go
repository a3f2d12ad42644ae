// SPDX-License-Identifier: Apache-2.0

package discover

import (
	"context"
	"sync"

	"github.com/attune-hpc/attune/controller/track"
	"github.com/attune-hpc/attune/internal/queue"
)

// viewQueue bounds the events that wait for one listener. One that is slower
// loses events, and hears of it: it must not hold up the others.
const viewQueue = 4096

// membership is who is in which view.
type membership interface {
	// add makes a process and what it forks from now on members of a view.
	add(pid int, view uint32) error
	remove(pid int, view uint32) error
	// lostOf is how many events were lost of anybody and of a view.
	lostOf(v *view) uint64
	// drop ends a view.
	drop(view uint32) error
}

// view is a track.Source of some of the node's processes.
type view struct {
	of      membership
	id      uint32
	uid     uint32 // whose it is
	events  *queue.Queue[track.Event]
	refused uint64 // children that earlier streams did not follow; of guards it
	close   sync.Once
}

// put hands over an event, or counts it as lost.
func (v *view) put(e track.Event) {
	v.events.Offer(e)
}

// Add implements track.Source.
func (v *view) Add(pid int) error { return v.of.add(pid, v.id) }

// Remove implements track.Source.
func (v *view) Remove(pid int) error { return v.of.remove(pid, v.id) }

// Lost implements track.Source. What the stream loses may have been anybody's.
func (v *view) Lost() uint64 { return v.events.Dropped() + v.of.lostOf(v) }

// Run implements track.Source. When ctx ends, what is queued is handed over
// first.
func (v *view) Run(ctx context.Context, handle func(track.Event)) error {
	for ctx.Err() == nil { // more may come for as long as processes fork
		e, err := v.events.Take(ctx)
		if err != nil {
			break
		}
		handle(e)
	}
	for _, e := range v.events.Drain() {
		handle(e)
	}
	return nil
}

// Close implements track.Source: its processes are nobody's any more.
func (v *view) Close() (err error) {
	v.close.Do(func() {
		v.events.Close()
		err = v.of.drop(v.id)
	})
	return err
}
