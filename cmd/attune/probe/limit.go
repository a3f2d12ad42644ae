// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"sync"
	"sync/atomic"
	"time"
)

// patience is how long a watch of a given time waits for its first point to be in place.
const patience = 30 * time.Second

// limit ends a watch a given time after its first point was in place: the machine may take a
// second to place it. A nil limit never ends.
type limit struct {
	most  time.Duration
	timer *time.Timer
	first sync.Once
	ended atomic.Bool
}

// newLimit has end called, not as a deadline of a context: the session would hear of it and
// end the stream itself. Nil of no time.
func newLimit(most time.Duration, end func()) *limit {
	if most == 0 {
		return nil
	}
	l := &limit{most: most}
	l.timer = time.AfterFunc(patience, func() {
		l.ended.Store(true)
		end()
	})
	return l
}

// begin notes that a point is in place. Only the first call counts.
func (l *limit) begin() {
	if l != nil {
		l.first.Do(func() { l.timer.Reset(l.most) })
	}
}

// past says whether the time is up.
func (l *limit) past() bool { return l != nil && l.ended.Load() }

func (l *limit) stop() {
	if l != nil {
		l.timer.Stop()
	}
}
