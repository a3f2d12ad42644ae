// SPDX-License-Identifier: Apache-2.0

//go:build privileged

package uprobe

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/attune-hpc/attune/internal/clock"
	"github.com/attune-hpc/attune/internal/testing/patience"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// collect runs Run beside the body and returns all records up to its end. The
// body may await a number of records.
func collect(t *testing.T, u *Uprobes, body func(await func(int))) []hit {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	received := make(chan int, 1) // the latest count
	var records []hit
	go func() {
		ended <- u.Run(ctx, func(batch Batch) {
			records = append(records, decodeBatch(t, batch)...)
			select {
			case <-received:
			default:
			}
			received <- len(records)
		})
	}()
	body(func(want int) {
		for got := 0; got < want; {
			select {
			case got = <-received:
			case <-time.After(patience.Limit):
				t.Fatalf("%d records, want %d; %d lost", got, want, u.Lost())
			}
		}
	})
	cancel()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	return records
}

func mustAttachEvents(t *testing.T, u *Uprobes, binary, symbol string, spec Spec) *targetProcess {
	t.Helper()
	target := mustStartTarget(t, binary)
	spec.Path, spec.Symbols = binary, mustSymbols(t, binary, symbol)
	if spec.Delivery == attunev1.Delivery_DELIVERY_UNSPECIFIED {
		spec.Delivery = attunev1.Delivery_DELIVERY_EVENT
	}
	mustAttach(t, u, spec)
	mustWatch(t, u, target.PID, spec.Point)
	return target
}

func TestEventsAreExact(t *testing.T) {
	binary := mustCompile(t, "target.c")
	for mechanism, opts := range mechanisms() {
		t.Run(mechanism, func(t *testing.T) {
			u := mustUprobes(t, opts)
			target := mustAttachEvents(t, u, binary, "starts_with_push", Spec{Point: 700})
			const bursts, calls = 20, 5000
			before := uint64(clock.Monotonic())
			records := collect(t, u, func(await func(int)) {
				for i := range bursts {
					target.mustCall(t, "push %d", calls)
					await((i + 1) * calls)
				}
			})
			if len(records) != bursts*calls || u.Lost() != 0 {
				t.Fatalf("%d records, %d lost, want %d and 0", len(records), u.Lost(), bursts*calls)
			}
			for i, record := range records {
				if record.Value != uint64(i%calls) || record.Point != 700 || record.Flags != 0 ||
					record.Process != uint32(target.PID) || record.Thread != uint32(target.PID) || record.Time < before {
					t.Fatalf("record %d = %+v", i, record)
				}
				before = record.Time
			}
			if got := mustAggregate(t, u, target.PID, 700); got.Count != bursts*calls || got.Lost != 0 {
				t.Errorf("%d hits, %d lost", got.Count, got.Lost)
			}
		})
	}
}

// Coarse times are some record's own, in order, and few.
func TestCoarseTimes(t *testing.T) {
	u := mustUprobes(t, Options{})
	target := mustAttachEvents(t, u, mustCompile(t, "target.c"), "starts_with_push", Spec{Point: 1, CoarseTime: true})
	const calls = 20_000
	before := uint64(clock.Monotonic())
	records := collect(t, u, func(func(int)) { target.mustCall(t, "push %d", calls) })
	after := uint64(clock.Monotonic())
	different, since := 0, 0
	for i, record := range records {
		if record.Time < before || record.Time > after {
			t.Fatalf("record %d at %d, after %d and before %d", i, record.Time, before, after)
		}
		if since++; i == 0 || record.Time != before {
			different, since = different+1, 1
		}
		if since > 16 {
			t.Fatalf("record %d is the %dth at %d", i, since, record.Time)
		}
		before = record.Time
	}
	// One time for 16 records, and one more for each tick meanwhile.
	if len(records) != calls || different < calls/16 || different > calls/4 {
		t.Errorf("%d records at %d times", len(records), different)
	}
}

func TestSampledEvents(t *testing.T) {
	u := mustUprobes(t, Options{})
	target := mustAttachEvents(t, u, mustCompile(t, "target.c"), "starts_with_push",
		Spec{Point: 1, Delivery: attunev1.Delivery_DELIVERY_SAMPLED, SampleMask: 15})
	records := collect(t, u, func(func(int)) { target.mustCall(t, "push 1000") })
	if len(records) != 63 || records[1].Value != 16 || records[1].Flags != recordSampled {
		t.Errorf("%d records, second %+v", len(records), records[1])
	}
}

func TestDurationEvents(t *testing.T) {
	u := mustUprobes(t, Options{})
	target := mustAttachEvents(t, u, mustCompile(t, "target.c"), "sleeps", Spec{Point: 1, Place: atBoth})
	records := collect(t, u, func(func(int)) { target.mustCall(t, "sleeps 3 1500") })
	if len(records) != 3 {
		t.Fatalf("records %+v", records)
	}
	for _, record := range records {
		if record.Value != 1500 || record.Flags != recordDuration || time.Duration(record.Extra) < 1500*time.Microsecond {
			t.Errorf("record %+v", record)
		}
	}
}

func TestLossIsCountedWhenNobodyReads(t *testing.T) {
	u := mustUprobes(t, Options{RingBytes: 64 << 10})
	target := mustAttachEvents(t, u, mustCompile(t, "target.c"), "starts_with_push", Spec{Point: 1})
	const calls = 10_000
	target.mustCall(t, "push %d", calls)
	lost := u.Lost()
	records := collect(t, u, func(func(int)) {})
	if lost == 0 || len(records)+int(lost) != calls {
		t.Errorf("%d records, %d lost, want %d in all", len(records), lost, calls)
	}
	if got := mustAggregate(t, u, target.PID, 1); got.Count != calls || got.Lost != lost {
		t.Errorf("aggregate counts %d, %d lost, want %d and %d", got.Count, got.Lost, calls, lost)
	}
	// What was read made room.
	records = collect(t, u, func(func(int)) { target.mustCall(t, "push 100") })
	if len(records) != 100 || u.Lost() != lost {
		t.Errorf("%d records, %d lost more", len(records), u.Lost()-lost)
	}
}

func TestRunEndsWithUprobesClose(t *testing.T) {
	tests := []struct {
		name   string
		events bool
	}{{"before the first point", false}, {"polling", true}}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			u := mustUprobes(t, Options{})
			handled := make(chan struct{}, 1)
			ended := make(chan error, 1)
			go func() {
				ended <- u.Run(t.Context(), func(Batch) {
					select {
					case handled <- struct{}{}:
					default:
					}
				})
			}()
			if test.events {
				target := mustAttachEvents(t, u, mustCompile(t, "target.c"), "starts_with_push", Spec{Point: 1})
				target.mustCall(t, "push 1")
				<-handled
			}
			if err := u.Close(); err != nil {
				t.Fatal(err)
			}
			if err := <-ended; err != nil {
				t.Error(err)
			}
		})
	}
}

// Two points on one function are two hits of one call.
func TestTwoPointsOnOneFunction(t *testing.T) {
	u := mustUprobes(t, Options{})
	binary := mustCompile(t, "target.c")
	target := mustAttachEvents(t, u, binary, "starts_with_push", Spec{Point: 1})
	mustAttach(t, u, Spec{
		Path: binary, Symbols: mustSymbols(t, binary, "starts_with_push"), Point: 2,
		Parameter: 1, Delivery: attunev1.Delivery_DELIVERY_EVENT,
	})
	mustWatch(t, u, target.PID, 2)
	records := collect(t, u, func(func(int)) { target.mustCall(t, "push 1 5") })
	slices.SortFunc(records, func(a, b hit) int { return int(a.Point) - int(b.Point) })
	if len(records) != 2 || records[0].Value != 5 || records[1].Value != 11 {
		t.Errorf("records %+v", records)
	}
}

// Each process is told what it has lost itself, also at points that it has left
// since, and what it has recorded comes when it is asked for.
func TestLossIsToldByProcess(t *testing.T) {
	u := mustUprobes(t, Options{RingBytes: 4096})
	binary := mustCompile(t, "target.c")
	stays := mustAttachEvents(t, u, binary, "starts_with_push", Spec{Point: 1})
	leaves := mustStartTarget(t, binary)
	mustWatch(t, u, leaves.PID, 1)

	const calls = 3000
	stays.mustCall(t, "push %d", calls)
	leaves.mustCall(t, "push %d", 2*calls)
	if err := u.UnwatchProcess(leaves.PID, 1); err != nil {
		t.Fatal(err)
	}
	got := make(map[uint32]uint64)
	var lost uint64
	handled := make(chan struct{}, 1)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- u.Run(ctx, func(b Batch) {
			got[b.Process] += b.Hits + b.Lost
			lost += b.Lost
			select {
			case handled <- struct{}{}:
			default:
			}
		})
	}()
	<-handled // it runs
	stays.mustCall(t, "push %d", calls)
	if err := u.Flush(); err != nil {
		t.Fatal(err)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	if got[uint32(stays.PID)] != 2*calls || got[uint32(leaves.PID)] != 2*calls || lost != u.Lost() {
		t.Errorf("told of %v (process %d stayed), %d lost of %d", got, stays.PID, lost, u.Lost())
	}
	if err := u.Flush(); err != nil {
		t.Error(err)
	}
}
