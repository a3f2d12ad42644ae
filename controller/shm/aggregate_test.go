// SPDX-License-Identifier: Apache-2.0

package shm

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/attune-hpc/attune/controller/aggregate"
)

// histogram makes one from bucket, count pairs.
func histogram(pairs ...uint64) (h [HistogramBuckets]uint32) {
	for i := 0; i < len(pairs); i += 2 {
		h[pairs[i]] = uint32(pairs[i+1])
	}
	return h
}

func checkAggregates(t *testing.T, m *Memory, s Scale, want ...Aggregate) {
	t.Helper()
	if diff := cmp.Diff(want, m.Aggregates(nil, s)); diff != "" {
		t.Error(diff)
	}
}

func TestAggregatesAreDifferences(t *testing.T) {
	m, app := mustApp(t, small())
	first, second := app.Claim(1, 0), app.Claim(2, 3)
	first.Count(5, 100) // before anybody asked
	mustSet(t, m, 5, PointControl{Point: 50, Aggregate: true})
	mustSet(t, m, 6, PointControl{Point: 60, Event: true})
	first.Count(5, 7)
	second.Count(5, 0)
	second.Count(5, 9)
	checkAggregates(t, m, Scale{}, Aggregate{Point: 50, Counts: aggregate.Counts{Count: 3, Sum: 16, Min: 0, Max: 9, Known: true,
		Histogram: histogram(0, 1, 3, 1, 4, 1)}})
	checkAggregates(t, m, Scale{}, Aggregate{Point: 50})
	second.Count(5, 4)
	checkAggregates(t, m, Scale{}, Aggregate{Point: 50, Counts: aggregate.Counts{Count: 1, Sum: 4, Min: 4, Max: 4, Known: true,
		Histogram: histogram(3, 1)}})
	second.Count(5, 1) // of no interval that anybody sees
	m.ClearPoint(5)
	second.Count(5, 4) // was under way
	mustSet(t, m, 5, PointControl{Point: 51, Aggregate: true})
	second.Count(5, 3)
	checkAggregates(t, m, Scale{}, Aggregate{Point: 51, Counts: aggregate.Counts{Count: 1, Sum: 3, Min: 3, Max: 3, Known: true,
		Histogram: histogram(2, 1)}})
}

// TestAggregatesOfReusedSlot: the next owner of a slot counts on.
func TestAggregatesOfReusedSlot(t *testing.T) {
	m, app := mustApp(t, Geometry{Slots: 1, Rings: 1, RingRecords: 64})
	mustSet(t, m, 0, PointControl{Point: 1, Aggregate: true})
	d := NewDrainer(steadyClock())
	var dst []Aggregate
	for tid := 1; tid < 5; tid++ {
		thread := app.Claim(tid, 0)
		thread.Count(0, 1)
		dst = m.Aggregates(dst[:0], Scale{})
		thread.Count(0, 1)
		thread.Close()
		m.Drain(d, func([]byte) {})
		dst = m.Aggregates(dst, Scale{})
		if len(dst) != 2 || dst[0].Count != 1 || dst[1].Count != 1 {
			t.Fatalf("thread %d: got %+v", tid, dst)
		}
	}
}

// TestAggregatesOfThreadsWithoutSlot: what they have in common is part of the sum.
func TestAggregatesOfThreadsWithoutSlot(t *testing.T) {
	m, app := mustApp(t, Geometry{Slots: 1, Rings: 1, RingRecords: 64})
	mustSet(t, m, 3, PointControl{Point: 1, Aggregate: true})
	thread := app.Claim(1, 0)
	thread.Count(3, 7)
	app.Common().Count(3, 2)
	checkAggregates(t, m, Scale{}, Aggregate{Point: 1, Counts: aggregate.Counts{Count: 2, Sum: 9, Min: 2, Max: 7, Known: true,
		Histogram: histogram(2, 1, 3, 1)}})
}

func TestAggregatesWrap(t *testing.T) {
	m, app := mustApp(t, small())
	one, other := app.Claim(1, 0), app.Claim(2, 0)
	one.Count(0, math.MaxUint64)
	one.SetBucket(0, 63, math.MaxUint32-1)
	other.Count(0, math.MaxUint64)
	mustSet(t, m, 0, PointControl{Point: 1, Aggregate: true})
	m.Aggregates(nil, Scale{})
	for range 3 {
		one.Count(0, math.MaxUint64)
	}
	got := m.Aggregates(nil, Scale{})
	if want := histogram(63, 3); got[0].Histogram != want || got[0].Count != 3 {
		t.Errorf("got %+v", got[0])
	}
}

func TestAggregatesOfDurations(t *testing.T) {
	m, app := mustApp(t, small())
	mustSet(t, m, 0, PointControl{Point: 1, Aggregate: true, Duration: true})
	thread := app.Claim(1, 0)
	thread.Count(0, 4000) // 1000 ns: bit width 10, not 12
	thread.Count(0, 40)   // 10 ns: 4, not 6
	thread.Count(0, 0)
	quarter := Scale{mult: 1 << 30}
	checkAggregates(t, m, quarter, Aggregate{Point: 1, Duration: true, Counts: aggregate.Counts{Count: 3, Sum: 1010, Max: 1000, Known: true,
		Histogram: histogram(0, 1, 4, 1, 10, 1)}})
	// What follows is in another unit, so it starts anew.
	thread.Count(0, 40)
	mustSet(t, m, 0, PointControl{Point: 1, Aggregate: true})
	thread.Count(0, 40)
	got := m.Aggregates(nil, quarter)
	if got[0].Sum != 40 || got[0].Duration {
		t.Errorf("got %+v", got[0])
	}
}

// TestDurationBucketsAreOneOffAtMost checks the promise of the Histogram for
// values all over the range at several rates.
func TestDurationBucketsAreOneOffAtMost(t *testing.T) {
	for _, rate := range []float64{0.2, 0.33, 0.4, 0.5, 0.999, 1, 1.7} {
		s := Scale{mult: uint64(rate * (1 << 32))}
		for b := 2; b < HistogramBuckets-1; b++ {
			for _, v := range []uint64{1 << (b - 1), 3 << (b - 2), 1<<b - 1} {
				exact := bucketOf(s.Duration(v))
				if got := durationBucket(b, s); got < exact-1 || got > exact+1 {
					t.Errorf("rate %g, %d ticks: bucket %d, exact %d", rate, v, got, exact)
				}
			}
		}
	}
}

func bucketOf(v uint64) int {
	b := 0
	for ; v > 0 && b < HistogramBuckets-1; v >>= 1 {
		b++
	}
	return b
}
