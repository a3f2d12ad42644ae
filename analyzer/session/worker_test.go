// SPDX-License-Identifier: Apache-2.0

package session

import (
	"context"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/attune-hpc/attune/internal/queue"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// recordsCall is a call with n records of a process.
func recordsCall(process uint64, n int) call {
	req := &attunev1.HandleEventsRequest{Records: []*attunev1.NamedRecords{{Process: process, Records: make([]byte, n*attunev1.RecordSize)}}}
	return call{method: "HandleEvents", data: true, events: uint64(n), size: int64(n * attunev1.RecordSize), records: req}
}

// TestWorkerMergesRecords checks that records which wait go in few calls, in
// order and none twice, and stay behind the news that came before them.
func TestWorkerMergesRecords(t *testing.T) {
	w := &worker{ctx: context.Background(), wake: queue.NewBell()}
	const half = mergeBytes / attunev1.RecordSize / 2
	for _, c := range []call{recordsCall(1, half), recordsCall(2, half), recordsCall(3, 1), {method: "Tick"}, recordsCall(4, 1)} {
		w.push(c)
	}
	var got []string
	for range 4 {
		c, _ := w.next()
		parts := c.method
		for _, part := range c.records.GetRecords() {
			parts += " " + string(rune('0'+part.GetProcess()))
		}
		got = append(got, parts)
	}
	want := []string{"HandleEvents 1 2", "HandleEvents 3", "Tick", "HandleEvents 4"}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("call %d: %q, want %q", i, got[i], want[i])
		}
	}
	if w.data != 0 || w.bytes != 0 {
		t.Errorf("an empty queue counts %d calls, %d bytes", w.data, w.bytes)
	}
}

// TestWorkerTellsOfDroppedRecords checks that what a slow tunlet does not get
// is told with the next records of the same process, each once.
func TestWorkerTellsOfDroppedRecords(t *testing.T) {
	w := &worker{ctx: context.Background(), wake: queue.NewBell()}
	for range maxData {
		w.push(recordsCall(1, 1))
	}
	w.push(recordsCall(1, 5))
	w.push(recordsCall(2, 7))
	if w.lost() != 12 {
		t.Fatalf("%d records dropped, want 12", w.lost())
	}
	if c, _ := w.next(); len(c.records.GetRecords()) != maxData {
		t.Fatalf("%d parts in one call, want %d", len(c.records.GetRecords()), maxData)
	}
	for range 2 {
		w.push(recordsCall(1, 1))
	}
	c, _ := w.next()
	if first, second := c.records.GetRecords()[0].GetLost(), c.records.GetRecords()[1].GetLost(); first != 5 || second != 0 {
		t.Errorf("the next records tell of %d and %d lost, want 5 and 0", first, second)
	}
	if first, second := w.takeUntold(2), w.takeUntold(2); first != 7 || second != 0 {
		t.Errorf("at the end %d and %d are told, want 7 and 0", first, second)
	}
}

// TestWorkerCountsRefusedData has a tunlet answer with errors: what it did not
// take is lost, unless it has said that it wants none.
func TestWorkerCountsRefusedData(t *testing.T) {
	for code, want := range map[codes.Code]uint64{
		codes.ResourceExhausted: 5, codes.Unimplemented: 0, codes.OK: 0,
	} {
		w := &worker{ctx: context.Background(), wake: queue.NewBell(), timeout: patience, failed: func(string, error) {}}
		c := recordsCall(1, 5)
		c.do = func(context.Context) (*attunev1.Reaction, error) { return nil, status.Error(code, "no") }
		w.make(c)
		w.make(call{method: "Tick", do: c.do})
		if lost, untold := w.lost(), w.takeUntold(1); lost != want || untold != want {
			t.Errorf("%v: %d events lost, %d to be told, want %d", code, lost, untold, want)
		}
	}
}
