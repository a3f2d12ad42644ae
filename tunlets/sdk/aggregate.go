// SPDX-License-Identifier: Apache-2.0

package sdk

import (
	"math/bits"
	"slices"
	"strings"
	"time"

	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// Aggregates are the sums of one interval.
type Aggregates struct {
	// From and To bound the interval.
	From, To time.Time
	// Items hold one entry per point and process that is watched, also where
	// nothing was hit. They are of one host.
	Items []Aggregate
	// Unknown are the processes of that host, in order, of which Items do not
	// have all hits of the interval: the overhead budget has a measure point
	// off, or had it for a part of the time, or its entry is missing. What was
	// hit there is not known; it is not zero. Sums over such a process are no
	// value of an objective.
	Unknown []Handle
}

// Known says that Items have all hits of a process.
func (a Aggregates) Known(p Handle) bool {
	_, missing := slices.BinarySearch(a.Unknown, p)
	return !missing
}

// Seconds is the interval's length; 0 for an interval that is none.
func (a Aggregates) Seconds() float64 {
	if d := a.To.Sub(a.From); d > 0 {
		return d.Seconds()
	}
	return 0
}

// Aggregate sums the hits of one point in one process over one interval.
type Aggregate struct {
	// Point is the tunlet's own id of the measure point.
	Point string
	// Process in which it was hit.
	Process Handle
	// Key of these hits, if Keyed. A point with a key has an aggregate for each
	// that was hit, and one that is not Keyed for all keys without a place.
	Key   uint64
	Keyed bool
	// KeyText is the key of one that is no number: the bytes of a string, or the functions
	// of a stack, outermost first, with semicolons between them.
	KeyText string
	// Unreadable counts hits that are in none of these figures, because the
	// value or the key could not be read. With a key it is where Keyed is not.
	Unreadable uint64
	// Count of hits that passed the predicate.
	Count uint64
	// Signed says that values may be negative: Sum, Min and Max are two's complement.
	// So they are of signed and floating point captures, and of arguments of static
	// probes that the point gives no type.
	Signed bool
	// Sum of the values; see Total.
	Sum uint64
	// Min and Max of the values. Meaningless if Count is 0.
	Min, Max uint64
	// Histogram: bucket b counts values of bit width b, that is from 2^(b-1)
	// to 2^b-1; bucket 0 counts zeros, and what is negative. Trailing zeros are cut off.
	Histogram []uint64
}

// Total is the sum of the values as a number.
func (a Aggregate) Total() float64 {
	if a.Signed {
		return float64(int64(a.Sum))
	}
	return float64(a.Sum)
}

// Mean of the values, 0 without hits.
func (a Aggregate) Mean() float64 {
	if a.Count == 0 {
		return 0
	}
	return a.Total() / float64(a.Count)
}

// CountFrom counts the hits with values of at least the given one, rounded
// down to a power of two.
func (a Aggregate) CountFrom(least uint64) uint64 {
	var n uint64
	for b := bits.Len64(least); b < len(a.Histogram); b++ {
		n += a.Histogram[b]
	}
	return n
}

// ShareFrom estimates what part of Sum comes from values of at least the given
// one (rounded down to a power of two). A bucket counts with the mean of its
// bounds, so the estimate is exact to a factor of 1.5 per bucket and usually
// much better.
func (a Aggregate) ShareFrom(least uint64) float64 {
	var all, above float64
	from := bits.Len64(least)
	for b, n := range a.Histogram {
		weight := float64(n) * bucketMean(b)
		all += weight
		if b >= from {
			above += weight
		}
	}
	if all == 0 {
		return 0
	}
	return above / all
}

func bucketMean(b int) float64 {
	if b == 0 {
		return 0
	}
	return 1.5 * float64(uint64(1)<<(b-1))
}

// aggregatesFrom converts those of a call; signed are the points whose values may be negative.
func aggregatesFrom(r *attunev1.HandleEventsRequest, signed map[string]bool) Aggregates {
	out := Aggregates{From: time.Unix(0, r.GetFromUnixNano()), To: time.Unix(0, r.GetToUnixNano())}
	out.Items = make([]Aggregate, 0, len(r.GetAggregates()))
	for _, n := range r.GetAggregates() {
		a := n.GetAggregate()
		out.Items = append(out.Items, Aggregate{
			Point: n.GetPointId(), Process: Handle(a.GetProcess()),
			Count: a.GetCount(), Signed: signed[n.GetPointId()], Sum: a.GetSum(), Min: a.GetMin(), Max: a.GetMax(),
			Histogram: clipHistogram(a.GetHistogram()),
			Key:       a.GetKey(), Keyed: a.Key != nil || a.GetKeyText() != nil, Unreadable: a.GetUnreadable(),
			KeyText: string(a.GetKeyText().GetText()) + strings.Join(a.GetKeyText().GetFrames(), ";"),
		})
	}
	return out
}

// clipHistogram bounds the histogram to the bit widths that exist.
func clipHistogram(h []uint64) []uint64 {
	const widths = 65
	return h[:min(len(h), widths)]
}
