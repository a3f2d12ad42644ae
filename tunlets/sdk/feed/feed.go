// SPDX-License-Identifier: Apache-2.0

// Package feed turns what happens in a session into what one tunlet gets of it. The
// Analyzer, replay and the test harness share it, so that a tunlet is tested with
// what it will get, in the order in which it will.
//
// The order: of what one controller measures, single hits come as records, soon after
// they happened. At the end of a round come its samples, and after them the
// aggregates of the interval that ends with it, so that a tunlet which sees a symptom
// in the samples can judge the hits of the same round by it. The two are calls of
// their own. A tick is the session's, not a controller's: it may come between any
// two calls. News of a process come before what is measured in it, the word on a
// measure point before its hits, and the end of a process after all of them.
package feed

import (
	"slices"

	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
	"github.com/attune-hpc/attune/tunlets/sdk/samplefilter"
)

// Feed knows what one tunlet wants: samples and details by its Filter, and measure
// points under the tunlet's own names. The zero value lets all samples pass and has
// no points. Not safe for use by several goroutines.
type Feed struct {
	samplefilter.Filter

	points map[uint32][]*attunev1.MeasurePoint // by index, under each name
	single int                                 // those delivered as records
}

// Add says that the tunlet calls a point by a name, the spec's id. The spec is kept.
func (f *Feed) Add(index uint32, spec *attunev1.MeasurePoint) {
	if f.points == nil {
		f.points = make(map[uint32][]*attunev1.MeasurePoint)
	}
	f.points[index] = append(f.points[index], spec)
	f.single += single(spec)
}

// Remove takes a name from a point; without any, it is none of the tunlet's.
func (f *Feed) Remove(index uint32, id string) {
	rest := slices.DeleteFunc(f.points[index], func(spec *attunev1.MeasurePoint) bool {
		if spec.GetId() != id {
			return false
		}
		f.single -= single(spec)
		return true
	})
	if len(rest) == 0 {
		delete(f.points, index)
	} else {
		f.points[index] = rest
	}
}

// single is 1 for a point that is delivered as records.
func single(spec *attunev1.MeasurePoint) int {
	if d := spec.GetDelivery(); d == attunev1.Delivery_DELIVERY_EVENT || d == attunev1.Delivery_DELIVERY_SAMPLED {
		return 1
	}
	return 0
}

// Names returns what the tunlet calls a point in a process, in the order in which it
// asked; nothing if it did not ask for it there. Process 0 stands for none in
// particular.
func (f *Feed) Names(index uint32, process uint64) (ids []string) {
	for _, spec := range f.points[index] {
		if Covers(spec, process) {
			ids = append(ids, spec.GetId())
		}
	}
	return ids
}

// Covers says whether a point is meant for a process.
func Covers(spec *attunev1.MeasurePoint, process uint64) bool {
	return len(spec.GetProcesses()) == 0 || process == 0 || slices.Contains(spec.GetProcesses(), process)
}

// Samples returns what the tunlet gets of a round, a call each. It shares the samples
// with the argument.
func (f *Feed) Samples(round *attunev1.SampleBatch) (out []*attunev1.HandleEventsRequest) {
	for _, part := range f.Pass(round) {
		out = append(out, &attunev1.HandleEventsRequest{Samples: part})
	}
	return out
}

// Aggregates returns what the tunlet gets of an interval; nil: nothing. It shares the
// aggregates with the argument.
func (f *Feed) Aggregates(b *attunev1.AggregateBatch) *attunev1.HandleEventsRequest {
	if len(f.points) == 0 {
		return nil
	}
	var own []*attunev1.NamedAggregate
	for _, a := range b.GetAggregates() {
		for _, spec := range f.points[a.GetPoint()] {
			if Covers(spec, a.GetProcess()) {
				own = append(own, &attunev1.NamedAggregate{PointId: spec.GetId(), Aggregate: a})
			}
		}
	}
	if own == nil {
		return nil
	}
	return &attunev1.HandleEventsRequest{Aggregates: own, FromUnixNano: b.GetFromUnixNano(), ToUnixNano: b.GetToUnixNano()}
}

// Records returns what the tunlet gets of the records of a process, and how many they
// are; nil: nothing. A tunlet with points that are delivered so hears of losses even
// without any. The records may share memory with the argument.
func (f *Feed) Records(n *attunev1.NamedRecords) (own *attunev1.NamedRecords, count uint64) {
	if f.single == 0 {
		return nil, 0
	}
	var packed []byte
	for run := range attunev1.RecordRuns(n.GetRecords()) {
		if !slices.ContainsFunc(f.points[run.Point], func(spec *attunev1.MeasurePoint) bool { return Covers(spec, n.GetProcess()) }) {
			continue
		}
		count += run.Records
		if packed == nil {
			packed = run.Packed // of no capacity beyond: what follows it is copied
		} else {
			packed = append(packed, run.Packed...)
		}
	}
	if count == 0 && n.GetLost() == 0 {
		return nil, 0
	}
	return &attunev1.NamedRecords{
		Process: n.GetProcess(), Records: packed, Lost: n.GetLost(), MonotonicToUnixNano: n.GetMonotonicToUnixNano(),
	}, count
}
