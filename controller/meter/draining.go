// SPDX-License-Identifier: Apache-2.0

package meter

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/attune-hpc/attune/internal/beat"
	"github.com/attune-hpc/attune/internal/queue"
)

const (
	// drainShortest and drainLongest bound the time between two looks at the
	// rings while some point delivers records. In the shortest a thread with 30
	// million records per second fills a ring of 16,384, in the longest nobody misses
	// a record that waits. drainFill is how many records a look should find: more
	// of them at a time cost less each, and they are a quarter of a ring.
	drainShortest = 500 * time.Microsecond
	drainLongest  = 10 * time.Millisecond
	drainFill     = 4096
	// drainRest is the pace when no point delivers records: slots of ended
	// threads still have to be freed. Without any point threads have no slots.
	drainRest = 100 * time.Millisecond
	drainNone = time.Second
)

// draining empties the rings.
type draining struct {
	records *records
	points  func() int
	events  atomic.Int32 // points that deliver records
	paced   queue.Bell   // rung when the rings are to be looked at more often or less
}

// deliver notes that so many more points deliver records.
func (d *draining) deliver(more int32) {
	d.events.Add(more)
	d.paced.Ring()
}

// run empties the rings, the more often the faster they fill.
func (d *draining) run(ctx context.Context) error {
	timer := time.NewTimer(drainRest)
	defer timer.Stop()
	pace := drainLongest
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-d.paced:
		case <-timer.C:
		}
		switch {
		case d.points() == 0:
			timer.Reset(time.Until(beat.Multiple(time.Now(), drainNone)))
		case d.events.Load() == 0:
			d.records.drain()
			timer.Reset(drainRest)
		default:
			pace = nextPace(pace, d.records.drain())
			timer.Reset(pace)
		}
	}
}

// nextPace returns when to look again after a look that found so many records
// after so long: at once where too many were found, a little later each time
// where there were few.
func nextPace(last time.Duration, found uint64) time.Duration {
	wanted := drainLongest
	if found > 0 {
		wanted = time.Duration(float64(last) * drainFill / float64(found))
	}
	return max(drainShortest, min(wanted, 2*last, drainLongest))
}
