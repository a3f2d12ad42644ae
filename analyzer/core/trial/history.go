// SPDX-License-Identifier: Apache-2.0

package trial

import (
	"slices"
	"time"
)

// historySize bounds the samples kept per scope: 6.4 s at 50 ms.
const historySize = 128

// point is one sample: the value over the interval from..at.
type point struct {
	from, at time.Duration
	value    float64
}

// History holds the latest samples of one scope, oldest first.
type History struct {
	points []point
	last   time.Duration
}

// Add appends a sample that ends at the given time. A sample that is not
// newer than the last one is dropped: its interval cannot be told.
func (h *History) Add(at time.Duration, value float64) {
	from := h.last
	if len(h.points) == 0 {
		from = at
	} else if at <= h.last {
		return
	}
	h.last = at
	if len(h.points) == historySize {
		copy(h.points, h.points[1:])
		h.points = h.points[:historySize-1]
	}
	h.points = append(h.points, point{from, at, value})
}

// Latest returns when the latest sample ended; 0: there was none.
func (h *History) Latest() time.Duration { return h.last }

// Skip leaves a sample out that ends at the given time: the interval of the next one begins
// there.
func (h *History) Skip(at time.Duration) { h.last = max(h.last, at) }

// Empty reports whether there is no sample.
func (h *History) Empty() bool { return len(h.points) == 0 }

// Distance returns how far between the latest samples are; 0 where it is not known.
func (h *History) Distance() time.Duration {
	const latest = 16
	return distance(h.points[max(0, len(h.points)-latest):])
}

// distanceAfter returns how far between the samples are that ended after t; 0 where there are
// too few: a single one may be late by chance.
func (h *History) distanceAfter(t time.Duration) time.Duration {
	points := h.points
	for len(points) > 0 && points[0].at <= t {
		points = points[1:]
	}
	if len(points) < 2 {
		return 0
	}
	return distance(points)
}

// since returns the samples whose whole interval lies at or after t.
func (h *History) since(t time.Duration) []point {
	var out []point
	for _, p := range h.points {
		if p.from >= t {
			out = append(out, p)
		}
	}
	return out
}

// before returns at most n of the latest samples whose whole interval lies in
// from..to.
func (h *History) before(from, to time.Duration, n int) []point {
	var out []point
	for _, p := range h.points {
		if p.from >= from && p.at <= to {
			out = append(out, p)
		}
	}
	return out[max(0, len(out)-n):]
}

// leastJoined is the least number of values that samples in bursts are joined to.
const leastJoined = 4

// alike returns two groups of samples as values over intervals of the same
// length, that of the longer ones. While nothing happens a session samples less
// often, and values over longer intervals vary less: where progress comes in
// bursts, even their median is another one.
func alike(a, b []point) (valuesA, valuesB []float64) {
	length := max(usualLength(a), usualLength(b))
	return steady(a, length), steady(b, length)
}

// steady returns samples as values over intervals of at least that length.
// Where many of them saw no progress the bursts are further apart than an
// interval is long (on a crowded machine processes wait for one that does not
// run), and a median would tell how often they come, not what they achieve. So
// intervals are doubled, as far as there are values enough.
func steady(points []point, length time.Duration) []float64 {
	values := joined(points, length)
	for length > 0 && inBursts(values) {
		length *= 2
		longer := joined(points, length)
		if len(longer) < leastJoined {
			break
		}
		values = longer
	}
	return values
}

// inBursts says that in a quarter of the intervals or more nothing happened, but
// not in all.
func inBursts(values []float64) bool {
	idle := 0
	for _, value := range values {
		if value == 0 {
			idle++
		}
	}
	return idle < len(values) && 4*idle >= max(len(values), 1)
}

// distance returns the median length of the samples' intervals, or the mean where that is more:
// of samples that come in groups, the median is that within a group. 0: none is known.
func distance(points []point) time.Duration {
	var sum time.Duration
	known := lengths(points)
	for _, one := range known {
		sum += one
	}
	return max(usualLength(points), sum/time.Duration(max(1, len(known))))
}

// usualLength returns the median length of the samples' intervals; 0 where
// none is known.
func usualLength(points []point) time.Duration {
	known := lengths(points)
	if len(known) == 0 {
		return 0
	}
	slices.Sort(known)
	return known[len(known)/2]
}

// lengths returns the lengths of the samples' intervals that are known.
func lengths(points []point) (known []time.Duration) {
	for _, p := range points {
		if p.at > p.from {
			known = append(known, p.at-p.from)
		}
	}
	return known
}

// joined returns the means over consecutive samples, as many as together come
// nearest to length; ticks are not exact. What is too short at the end is left out, but where
// there is nothing else: one value says less than none, which would be taken for no difference.
// A sample whose interval is not known is taken as it is.
func joined(points []point, length time.Duration) []float64 {
	var out []float64
	var sum float64
	var span time.Duration
	for _, p := range points {
		one := p.at - p.from
		if one == 0 {
			out = append(out, p.value)
			continue
		}
		span += one
		sum += p.value * float64(one)
		if span+one/2 >= length {
			out = append(out, sum/float64(span))
			sum, span = 0, 0
		}
	}
	if len(out) == 0 && span > 0 {
		out = append(out, sum/float64(span))
	}
	return out
}

// mean returns the mean over the samples' whole time; there is at least one. Unlike the median, it
// does not depend on the length of their intervals.
func mean(points []point) float64 {
	var sum, whole float64
	for _, p := range points {
		length := float64(max(p.at-p.from, 1)) // of the first sample, it is not known
		sum += p.value * length
		whole += length
	}
	return sum / whole
}
