// SPDX-License-Identifier: Apache-2.0

package hits

import (
	"math"
	"math/bits"
	"slices"

	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// buckets of a histogram; the last one counts everything above.
const buckets = 64

// Sum is what is known of many values. The zero value is that of none; Signed
// must be set before the first one comes.
type Sum struct {
	// Signed says that values are in two's complement.
	Signed bool
	// Count is the number of values; Unreadable that of hits without one.
	Count, Unreadable uint64
	// Total is their sum, modulo 2^64, and Real as a number: of addresses there are soon so
	// many that 64 bits do not hold their sum. Add and Join keep it.
	Total uint64
	Real  float64
	// Least and Greatest are known if Bounded: a hit at the border of two
	// intervals may be counted in one and have its extremes in the other.
	Least, Greatest uint64
	Bounded         bool
	// Histogram counts values of bit width b in element b, of signed ones all
	// up to 0 in element 0.
	Histogram []uint64
}

// Join adds an aggregate.
func (s *Sum) Join(a *attunev1.Aggregate) {
	one := &Sum{
		Signed: s.Signed,
		Count:  a.GetCount(), Unreadable: a.GetUnreadable(), Total: a.GetSum(), Histogram: a.GetHistogram(),
		Least: a.GetMin(), Greatest: a.GetMax(), Bounded: Bounded(a.GetCount(), a.GetSum(), a.GetMin(), a.GetMax()),
	}
	one.Real = one.real()
	s.Merge(one)
}

// real returns the sum of values of which 64 bits are known: of all numbers that end in
// these, the one nearest to what the histogram says. Of negative values that says nothing.
func (s *Sum) real() float64 {
	total := s.number(s.Total)
	if used(s.Histogram) == 0 || s.Signed && s.Histogram[0] > 0 {
		return total
	}
	about := 0.0
	for bucket, n := range s.Histogram {
		if n > 0 {
			least, greatest := s.Bucket(bucket)
			about += float64(n) * (s.number(least) + s.number(greatest)) / 2
		}
	}
	const whole = 1 << 64
	return total + whole*math.Round((about-total)/whole)
}

// number returns the number that 64 bits are.
func (s *Sum) number(bits uint64) float64 {
	if s.Signed {
		return float64(int64(bits))
	}
	return float64(bits)
}

// Bounded says whether bounds are known that are 0 where they are not.
func Bounded(count, total, least, greatest uint64) bool {
	return count > 0 && (least != 0 || greatest != 0 || total == 0)
}

// Aggregate returns the sum as one of a point in a process.
func (s *Sum) Aggregate(point uint32, process uint64, key Key) *attunev1.Aggregate {
	a := &attunev1.Aggregate{
		Point: point, Process: process, Count: s.Count, Unreadable: s.Unreadable, Sum: s.Total,
		Histogram: s.Histogram[:used(s.Histogram)],
	}
	if s.Bounded && s.Count > 0 {
		a.Min, a.Max = s.Least, s.Greatest
	}
	key.into(a)
	return a
}

// used is the length of a histogram without trailing zeros.
func used(histogram []uint64) int {
	n := len(histogram)
	for n > 0 && histogram[n-1] == 0 {
		n--
	}
	return n
}

// Add adds one value.
func (s *Sum) Add(value uint64) {
	s.Count++
	s.Total += value
	s.Real += s.number(value)
	s.bound(value, value)
	width := bits.Len64(value)
	if s.Signed && int64(value) < 0 {
		width = 0
	}
	width = min(width, buckets-1)
	s.grow(width)
	s.Histogram[width]++
}

// Merge adds another sum, of values of the same kind.
func (s *Sum) Merge(o *Sum) {
	s.Count += o.Count
	s.Unreadable += o.Unreadable
	s.Total += o.Total
	s.Real += o.Real
	if o.Bounded {
		s.bound(o.Least, o.Greatest)
	}
	s.grow(used(o.Histogram) - 1)
	for b := range used(o.Histogram) {
		s.Histogram[b] += o.Histogram[b]
	}
}

// bound widens the bounds.
func (s *Sum) bound(least, greatest uint64) {
	if !s.Bounded || s.less(least, s.Least) {
		s.Least = least
	}
	if !s.Bounded || s.less(s.Greatest, greatest) {
		s.Greatest = greatest
	}
	s.Bounded = true
}

// grow makes room for a bucket.
func (s *Sum) grow(bucket int) {
	for len(s.Histogram) <= bucket {
		s.Histogram = append(s.Histogram, 0)
	}
}

func (s *Sum) less(a, b uint64) bool {
	if s.Signed {
		return int64(a) < int64(b)
	}
	return a < b
}

// Mean is the arithmetic mean; 0 of no values.
func (s *Sum) Mean() float64 {
	if s.Count == 0 {
		return 0
	}
	return s.Real / float64(s.Count)
}

// Bucket returns the least and the greatest value that a bucket counts, as far
// as the bounds of all values leave them.
func (s *Sum) Bucket(bucket int) (least, greatest uint64) {
	if bucket > 0 {
		least, greatest = 1<<(bucket-1), 1<<bucket-1
	}
	switch {
	case bucket == 0 && s.Signed:
		least = 1 << 63
	case bucket == buckets-1 && s.Signed:
		greatest = math.MaxInt64
	case bucket == buckets-1:
		greatest = math.MaxUint64
	}
	if s.Bounded && s.less(least, s.Least) {
		least = s.Least
	}
	if s.Bounded && s.less(s.Greatest, greatest) {
		greatest = s.Greatest
	}
	return least, greatest
}

// Percentile returns between what the value lies that so many percent of all
// values do not exceed (nearest rank). It is false of no values.
func (s *Sum) Percentile(percent float64) (least, greatest uint64, ok bool) {
	var all uint64
	for _, n := range s.Histogram {
		all += n
	}
	rank, seen := max(uint64(math.Ceil(float64(all)*percent/100)), 1), uint64(0)
	for bucket, n := range s.Histogram {
		if seen += n; n > 0 && seen >= rank {
			least, greatest = s.Bucket(bucket)
			return least, greatest, true
		}
	}
	return 0, 0, false
}

// Caller says whether a capture is the address that a call returns to.
func Caller(spec *attunev1.MeasurePoint, capture string) bool {
	return slices.ContainsFunc(spec.GetCaptures(), func(c *attunev1.Capture) bool {
		return c.GetName() == capture && c.GetContext() == attunev1.CaptureContext_CAPTURE_CONTEXT_CALL_SITE
	})
}
