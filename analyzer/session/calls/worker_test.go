// SPDX-License-Identifier: Apache-2.0

package calls

import (
	"context"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// worker returns one that is never late and tells nobody.
func worker(t *testing.T) *Worker {
	w := New(Config{Timeout: time.Hour, MaxNews: func() int { return 8 }, Failed: func(string, error) {}})
	t.Cleanup(w.Stop)
	return w
}

// recordsCall is a call with n records of a process.
func recordsCall(process uint64, n int) Call {
	req := &attunev1.HandleEventsRequest{Records: []*attunev1.NamedRecords{{Process: process, Records: make([]byte, n*attunev1.RecordSize)}}}
	return Call{Method: "HandleEvents", Data: true, Events: uint64(n), Size: int64(n * attunev1.RecordSize), Records: req}
}

// TestWorkerMergesRecords checks that records which wait go in few calls, in
// order and none twice, and stay behind the news that came before them.
func TestWorkerMergesRecords(t *testing.T) {
	w := worker(t)
	const half = mergeBytes / attunev1.RecordSize / 2
	for _, c := range []Call{recordsCall(1, half), recordsCall(2, half), recordsCall(3, 1), {Method: "Tick"}, recordsCall(4, 1)} {
		w.Push(c)
	}
	var got []string
	for range 4 {
		c, _ := w.next()
		parts := c.Method
		for _, part := range c.Records.GetRecords() {
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
	w := worker(t)
	for range MaxData {
		w.Push(recordsCall(1, 1))
	}
	w.Push(recordsCall(1, 5))
	w.Push(recordsCall(2, 7))
	if w.Lost() != 12 {
		t.Fatalf("%d records dropped, want 12", w.Lost())
	}
	if c, _ := w.next(); len(c.Records.GetRecords()) != MaxData {
		t.Fatalf("%d parts in one call, want %d", len(c.Records.GetRecords()), MaxData)
	}
	for range 2 {
		w.Push(recordsCall(1, 1))
	}
	c, _ := w.next()
	if first, second := c.Records.GetRecords()[0].GetLost(), c.Records.GetRecords()[1].GetLost(); first != 5 || second != 0 {
		t.Errorf("the next records tell of %d and %d lost, want 5 and 0", first, second)
	}
	if first, second := w.TakeUntold(2), w.TakeUntold(2); first != 7 || second != 0 {
		t.Errorf("at the end %d and %d are told, want 7 and 0", first, second)
	}
}

// TestWorkerCountsRefusedData has a tunlet answer with errors: what it did not
// take is lost, unless it has said that it wants none.
func TestWorkerCountsRefusedData(t *testing.T) {
	for code, want := range map[codes.Code]uint64{
		codes.ResourceExhausted: 5, codes.Unavailable: 5, codes.Canceled: 5, codes.DeadlineExceeded: 5, codes.Unimplemented: 0, codes.OK: 0,
	} {
		w := worker(t)
		w.cfg.Hung = func(string) {}
		c := recordsCall(1, 5)
		c.Do = func(context.Context) (*attunev1.Reaction, error) { return nil, status.Error(code, "no") }
		for _, c := range []Call{c, {Method: "Tick", Do: c.Do}} {
			w.Push(c)
			next, _ := w.next()
			w.make(next)
		}
		if lost, untold := w.Lost(), w.TakeUntold(1); lost != want || untold != want {
			t.Errorf("%v: %d events lost, %d to be told, want %d", code, lost, untold, want)
		}
	}
}

// TestWorkerCountsWhatIsLeft stops a worker with a call under way and others that wait:
// all of their data is lost, each once, and so is what comes later.
func TestWorkerCountsWhatIsLeft(t *testing.T) {
	w := worker(t)
	for n := range 3 {
		w.Push(Call{Method: "HandleEvents", Data: true, Events: 1 << n, Do: func(ctx context.Context) (*attunev1.Reaction, error) {
			return nil, ctx.Err()
		}})
		w.Push(Call{Method: "Tick", Events: 100})
	}
	under, _ := w.next()
	w.Stop()
	if lost := w.Lost(); lost != 7 {
		t.Errorf("%d events lost, want 7", lost)
	}
	w.make(under)
	w.Push(recordsCall(1, 8))
	if lost := w.Lost(); lost != 15 {
		t.Errorf("%d events lost in the end, want 15", lost)
	}
}

// TestWorkerRests: no call is made while the tunlet has to rest, unless an urgent one
// waits; those before it are made first, as ever.
func TestWorkerRests(t *testing.T) {
	w := worker(t)
	made := make(chan string, 3)
	call := func(method string, urgent bool) Call {
		return Call{Method: method, Urgent: urgent, Do: func(context.Context) (*attunev1.Reaction, error) {
			made <- method
			return nil, nil
		}}
	}
	go w.Run()
	const rest = 50 * time.Millisecond
	began := time.Now()
	w.Rest(rest)
	w.Rest(0) // does not end it
	w.Push(call("Tick", false))
	if got := <-made; time.Since(began) < rest {
		t.Errorf("%s after %v, want no call for %v", got, time.Since(began), rest)
	}
	w.Rest(time.Hour)
	w.Push(call("Tick", false))
	w.Push(call("ApplicationEnded", true))
	for _, want := range []string{"Tick", "ApplicationEnded"} {
		if got := <-made; got != want {
			t.Errorf("call of %s, want %s", got, want)
		}
	}
}
