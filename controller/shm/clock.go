// SPDX-License-Identifier: Apache-2.0

package shm

import (
	"math"
	"math/bits"
	"sync"
	"sync/atomic"
	"time"

	"github.com/attune-hpc/attune/internal/clock"
)

const (
	firstMeasurement = 2 * time.Millisecond
	// refreshAge bounds how stale the anchor gets: at the 25 ppm or so that the
	// first measurement may be off, 10 ms are 0.25 µs.
	refreshAge = 10 * time.Millisecond
	// baseline is the least stretch over which the rate is measured once that
	// much time has passed; twice as much is the most. Long enough for an
	// error below 0.1 ppm, short enough to follow a clock that is being
	// slewed.
	baseline = 4 * time.Second
	// anchorTries and anchorWidth choose among readings: interrupted ones are
	// useless.
	anchorTries = 8
	anchorWidth = 5 * time.Microsecond
	// maxDrift is the change of rate that only a jump of the counter explains
	// (a virtual machine that moved or was resumed).
	maxDrift = 0.01
)

// Scale converts ticks to nanoseconds around one anchor, in 32.32 fixed point.
// It is a plain value and may be copied.
type Scale struct {
	ticks uint64 // anchor
	nanos int64  // CLOCK_MONOTONIC at the anchor
	mult  uint64 // nanoseconds per tick, 32.32
	unix  int64  // add to CLOCK_MONOTONIC for Unix time
}

// Duration converts a number of ticks to nanoseconds.
func (s Scale) Duration(ticks uint64) uint64 {
	hi, lo := bits.Mul64(ticks, s.mult)
	return hi<<32 | lo>>32
}

// Ticks is the least number of ticks that are so many nanoseconds, as Duration
// converts them; the greatest number there is if that is beyond 64 bits.
func (s Scale) Ticks(nanos uint64) uint64 {
	if nanos == 0 {
		return 0
	}
	if nanos>>32 >= s.mult {
		return math.MaxUint64
	}
	quotient, rest := bits.Div64(nanos>>32, nanos<<32, s.mult)
	if rest > 0 && quotient < math.MaxUint64 {
		quotient++
	}
	return quotient
}

// UnixOffset is what to add to a CLOCK_MONOTONIC time to get Unix time.
func (s Scale) UnixOffset() time.Duration { return time.Duration(s.unix) }

// anchor is the same moment on the two clocks.
type anchor struct {
	ticks uint64
	nanos int64
	width uint64 // ticks that the reading took
}

// Clock calibrates the time-stamp counter against CLOCK_MONOTONIC. All methods
// may be called by several goroutines. Successive scales differ by less than a
// microsecond, so records drained before and after a refresh may be out of
// order by as much.
type Clock struct {
	now    func() uint64
	read   func() anchor
	offset func() time.Duration

	mu    sync.Mutex
	base  anchor // start of the stretch over which the rate is measured
	mid   anchor // becomes base later
	scale atomic.Pointer[Scale]
}

// NewClock calibrates for about 2 ms. It always works; whether its times can
// be trusted across processors says [clock.CheckCounter].
func NewClock() *Clock {
	c := &Clock{now: ticks, read: readAnchor, offset: clock.UnixOffset}
	c.calibrate()
	return c
}

// calibrate takes the first two anchors.
func (c *Clock) calibrate() {
	c.base = c.read()
	c.mid = c.base
	for {
		a := c.read()
		if a.nanos-c.base.nanos >= int64(firstMeasurement) {
			c.scale.Store(c.newScale(a, rate(c.base, a)))
			return
		}
	}
}

// Scale returns the conversion in force, refreshed when it is older than 10
// ms. Call it once per batch, not per record.
func (c *Clock) Scale() Scale {
	s := c.scale.Load()
	if c.mu.TryLock() {
		defer c.mu.Unlock()
		// A counter that went back makes the age huge, which is right too.
		if s.Duration(c.now()-s.ticks) >= uint64(refreshAge) {
			c.refresh()
		}
		s = c.scale.Load()
	}
	return *s
}

// refresh takes a new anchor and measures the rate over the longest stretch
// there is. The caller holds mu.
func (c *Clock) refresh() {
	a := c.read()
	old := c.scale.Load()
	if old.Duration(a.width) > uint64(anchorWidth) {
		return // every try was interrupted: the old scale is better
	}
	mult := rate(c.base, a)
	if drift(old.mult, mult) > maxDrift || a.ticks <= c.mid.ticks {
		c.base, c.mid, mult = a, a, old.mult
	}
	if a.nanos-c.mid.nanos >= int64(baseline) {
		c.base, c.mid = c.mid, a
	}
	c.scale.Store(c.newScale(a, mult))
}

func (c *Clock) newScale(a anchor, mult uint64) *Scale {
	return &Scale{ticks: a.ticks, nanos: a.nanos, mult: mult, unix: c.offset().Nanoseconds()}
}

// rate is nanoseconds per tick between two anchors, 32.32; 1 where it cannot
// be told.
func rate(from, to anchor) uint64 {
	nanos, ticks := uint64(to.nanos-from.nanos), to.ticks-from.ticks
	if to.nanos <= from.nanos || nanos>>32 >= ticks {
		return 1 << 32
	}
	quotient, _ := bits.Div64(nanos>>32, nanos<<32, ticks)
	return quotient
}

func drift(a, b uint64) float64 {
	d := float64(b)/float64(a) - 1
	return max(d, -d)
}

// readAnchor brackets the system clock between two readings of the counter and
// keeps the tightest of several.
func readAnchor() anchor {
	var best anchor
	for i := range anchorTries {
		before := ticks()
		nanos := clock.Monotonic().Nanoseconds()
		after := ticks()
		if w := after - before; i == 0 || w < best.width {
			best = anchor{ticks: before + w/2, nanos: nanos, width: w}
		}
	}
	return best
}
