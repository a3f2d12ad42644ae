// SPDX-License-Identifier: Apache-2.0

package shm

import (
	"testing"

	"github.com/attune-hpc/attune/controller/internal/dmtest"
	"github.com/attune-hpc/attune/dmlib/abi"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// BenchmarkDrain is the price of a record from the ring to the batch.
func BenchmarkDrain(b *testing.B) {
	tests := []struct {
		name  string
		flags uint16
	}{
		{"value", 0},
		{"duration", attunev1.RecordDuration},
	}
	for _, tt := range tests {
		b.Run(tt.name, func(b *testing.B) { benchmarkDrain(b, tt.flags) })
	}
}

func benchmarkDrain(b *testing.B, flags uint16) {
	b.Helper()
	const records = mostRecords
	m, app := mustApp(b, Geometry{Slots: 1, Rings: 1, RingRecords: records})
	mustSet(b, m, 0, PointControl{Point: 1, Event: true})
	thread := app.Claim(1, 0)
	for i := range uint64(records) {
		thread.Record(ticks(), 0, flags, i, 1000)
	}
	d := NewDrainer(NewClock())
	var sum uint64
	b.SetBytes(attunev1.RecordSize)
	b.ResetTimer()
	for done := 0; done < b.N; done += records {
		sum += m.Drain(d, func(batch []byte) { sum += uint64(batch[8]) }).Received
		*app.SlotLong(thread.Slot(), abi.SlotHeadAt) += records // the same again
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds()/1e6, "Mrecords/s")
	if sum == 0 {
		b.Fatal("nothing was drained")
	}
}

// BenchmarkDrainIdle is the price of looking where there is nothing, per
// process, with as many threads as given.
func BenchmarkDrainIdle(b *testing.B) {
	m, app := mustApp(b, Geometry{})
	d := NewDrainer(NewClock())
	for tid := range 8 {
		app.Claim(tid+1, 17*tid).Record(0, 0, 0, 0, 0)
	}
	for b.Loop() {
		m.Drain(d, func([]byte) {})
	}
}

// BenchmarkAggregates is the price of one interval of one process with 8
// threads and 4 points.
func BenchmarkAggregates(b *testing.B) {
	m, app := mustApp(b, Geometry{})
	threads := make([]*dmtest.Thread, 0, 8)
	for tid := range 8 {
		threads = append(threads, app.Claim(tid+1, 17*tid))
	}
	for point := range 4 {
		mustSet(b, m, point, PointControl{Point: uint16(point + 1), Aggregate: true})
		for _, thread := range threads {
			thread.Count(point, 100)
		}
	}
	var dst []Aggregate
	for b.Loop() {
		dst = m.Aggregates(dst[:0], Scale{mult: 1 << 31})
	}
	if len(dst) != 4 {
		b.Fatal(len(dst))
	}
}

// BenchmarkScale is the price of a conversion's parameters when they are
// fresh.
func BenchmarkScale(b *testing.B) {
	c := NewClock()
	for b.Loop() {
		_ = c.Scale()
	}
}
