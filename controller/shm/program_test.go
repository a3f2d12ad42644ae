// SPDX-License-Identifier: Apache-2.0

package shm

import (
	"errors"
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/attune-hpc/attune/controller/capture"
	"github.com/attune-hpc/attune/dmlib/abi"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// mustProgram captures a signed parameter, and sums it up by a key if one is
// wanted.
func mustProgram(t testing.TB, keys uint32) *Program {
	t.Helper()
	point := &attunev1.MeasurePoint{
		Captures: []*attunev1.Capture{
			{Name: "n", Type: attunev1.CaptureType_CAPTURE_TYPE_I32, Source: &attunev1.Capture_Parameter{Parameter: 1}},
			{Name: "thread", Source: &attunev1.Capture_Context{Context: attunev1.CaptureContext_CAPTURE_CONTEXT_THREAD}},
		},
		ValueCapture: "n",
	}
	if keys > 0 {
		point.KeyCapture, point.MaxKeys = "thread", keys
	}
	source, err := capture.Compile(point)
	if err != nil {
		t.Fatal(err)
	}
	program, err := NewProgram(source, nil)
	if err != nil {
		t.Fatal(err)
	}
	return program
}

func TestSetPointWritesTheProgram(t *testing.T) {
	m, app := mustApp(t, small())
	program := mustProgram(t, 0)
	mustSet(t, m, 3, PointControl{Point: 1, Aggregate: true, Program: program})
	if !slices.Equal(app.Program(3), program.code[:]) {
		t.Error("the memory holds another program")
	}
	if got := app.Control(3); got != abi.CtlAggregate|abi.CtlProgram {
		t.Errorf("control word %#x", got)
	}
	mustSet(t, m, 3, PointControl{Point: 1, Aggregate: true})
	if got := app.Control(3); got != abi.CtlAggregate {
		t.Errorf("control word %#x without a program", got)
	}
}

func TestProgramsAreSharedAndRunOut(t *testing.T) {
	m, _ := mustApp(t, small())
	set := func(local int, point uint16, keys uint32) error {
		return m.SetPoint(local, PointControl{Point: point, Aggregate: true, Program: mustProgram(t, keys)})
	}
	for local := range 10 { // one point in ten functions
		if err := set(local, 1, 5); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(set(10, 2, 5), set(11, 3, 0)); err != nil {
		t.Fatal(err)
	}
	if err := set(12, 4, 0); !errors.Is(err, ErrNoProgram) {
		t.Errorf("fourth of three programs: %v", err)
	}
	m.ClearPoint(11)
	if err := set(12, 4, 5); !errors.Is(err, ErrNoProgram) {
		t.Errorf("third of two tables: %v", err)
	}
	for local := range 10 {
		m.ClearPoint(local)
	}
	if err := set(12, 4, 5); err != nil {
		t.Error(err)
	}
	m.ClearPoint(12)
	m.ClearPoint(12)
	m.ClearPoint(10)
	if len(m.programs.freePrograms) != 3 || len(m.programs.freeTables) != 2 || len(m.programs.inUse) != 0 {
		t.Errorf("programs %v, tables %v are free, %d in use", m.programs.freePrograms, m.programs.freeTables, len(m.programs.inUse))
	}
}

func TestAggregatesOfSignedValues(t *testing.T) {
	m, app := mustApp(t, small())
	mustSet(t, m, 0, PointControl{Point: 1, Aggregate: true, Program: mustProgram(t, 0)})
	app.Claim(7, 0).Count(0, 5|abi.Sign)                // DMLib flips the sign bit for the order
	app.Claim(8, 0).Count(0, uint64(math.MaxUint64)>>1) // -1
	app.Unreadable(0)
	got := m.Aggregates(nil, Scale{})
	if len(got) != 1 || int64(got[0].Min) != -1 || int64(got[0].Max) != 5 || got[0].Count != 2 || got[0].Unreadable != 1 {
		t.Errorf("aggregates %+v", got)
	}
	if got := m.Aggregates(nil, Scale{}); got[0].Unreadable != 0 {
		t.Error("unreadable hits counted twice")
	}
}

// keyed is what a test looks at.
type keyed struct {
	Key                  int64 // -1: none
	Count, Sum, Min, Max uint64
	Unreadable           uint64
}

func keyedOf(aggregates []Aggregate) (out []keyed) {
	for _, a := range aggregates {
		k := keyed{Key: -1, Count: a.Count, Sum: a.Sum, Min: a.Min ^ abi.Sign, Max: a.Max ^ abi.Sign, Unreadable: a.Unreadable}
		if a.Count == 0 {
			k.Min, k.Max = 0, 0
		}
		if a.HasKey {
			k.Key = int64(a.Key)
		}
		out = append(out, k)
	}
	return out
}

func TestAggregatesByKey(t *testing.T) {
	m, app := mustApp(t, small())
	program := mustProgram(t, 5)
	for local := range 3 { // one entry per key, not per function
		mustSet(t, m, local, PointControl{Point: 1, Aggregate: true, Program: program})
	}
	table := 0
	app.CountKey(table, 9, 4)
	app.CountKey(table, 9, 2)
	app.CountKey(table, 0, 1)
	app.CountRest(table, 3)
	app.Unreadable(0)
	want := []keyed{{-1, 1, 3, 3, 3, 1}, {0, 1, 1, 1, 1, 0}, {9, 2, 6, 2, 4, 0}}
	if diff := cmp.Diff(want, keyedOf(m.Aggregates(nil, Scale{}))); diff != "" {
		t.Error(diff)
	}
	app.CountKey(table, 9, 7) // the extremes of the interval before are no more
	want = []keyed{{Key: -1}, {9, 1, 7, 7, 7, 0}}
	if diff := cmp.Diff(want, keyedOf(m.Aggregates(nil, Scale{}))); diff != "" {
		t.Error(diff)
	}
	for local := range 3 {
		m.ClearPoint(local)
	}
	for range small().Tables { // the next user of the table finds it as new
		mustSet(t, m, 5, PointControl{Point: 2, Aggregate: true, Program: program})
		want = []keyed{{Key: -1}}
		if diff := cmp.Diff(want, keyedOf(m.Aggregates(nil, Scale{}))); diff != "" {
			t.Error(diff)
		}
		m.ClearPoint(5)
	}
}

func TestDrainKeepsContinuations(t *testing.T) {
	m, app := mustApp(t, small())
	mustSet(t, m, 3, PointControl{Point: 300, Event: true})
	thread := app.Claim(101, 0)
	thread.Followed(3, 7, 0x21, 10, 11, 12, 13)
	thread.Record(0, 3, 0, 8, 0)
	thread.Followed(4, 9, 0x1, 14)                                                        // not enabled: nothing of it
	thread.Record(1, abi.ContinuationPoint, attunev1.RecordContinuation, 2, 3)            // nobody announced it
	thread.Record(1, abi.ContinuationPoint, 0, 2, 3)                                      // none at all
	app.Claim(102, 0).Record(1, abi.ContinuationPoint, attunev1.RecordContinuation, 2, 3) // first of its slot
	var events []event
	got := m.Drain(NewDrainer(steadyClock()), func(batch []byte) { events = append(events, decode(t, batch)...) })
	want := []event{
		{Time: 1000, Point: 300, Flags: 2 << attunev1.RecordFollow, Thread: 101, Value: 7},
		{Time: 10, Flags: attunev1.RecordContinuation, Thread: 0x21, Value: 11, Extra: 12},
		{Time: 13, Flags: attunev1.RecordContinuation},
		{Time: 1000, Point: 300, Thread: 101, Value: 8},
	}
	if diff := cmp.Diff(want, events); diff != "" {
		t.Error(diff)
	}
	mustSet(t, m, 3, PointControl{Point: 300, Event: true})
	thread.Followed(3, 7, 1, 10)
	m.Drain(NewDrainer(steadyClock()), func(batch []byte) {
		if n := attunev1.CountRecords(batch); n != 1 {
			t.Errorf("%d records counted in one with a continuation", n)
		}
	})
	if diff := cmp.Diff(Drained{Received: 2, Continuations: 2, Unmapped: 1, Corrupt: 1}, got); diff != "" {
		t.Error(diff)
	}
}

// TestDrainKeepsRecordsWhole moves the border between batches over records with
// continuations.
func TestDrainKeepsRecordsWhole(t *testing.T) {
	const records = 2 * BatchRecords
	m, app := mustApp(t, Geometry{Slots: 1, Rings: 1, RingRecords: records})
	mustSet(t, m, 0, PointControl{Point: 1, Event: true})
	thread, d := app.Claim(1, 0), NewDrainer(steadyClock())
	for before := range uint64(6) {
		sent := before
		for range before {
			thread.Record(0, 0, 0, 0, 0)
		}
		for thread.Followed(0, 1, 1, 1, 2, 3, 4, 5, 6, 7) {
			sent++
		}
		var batches [][]event
		got := m.Drain(d, func(batch []byte) { batches = append(batches, decode(t, batch)) })
		if got.Received != sent || got.Continuations != 3*(sent-before) || len(batches) < 2 {
			t.Fatalf("%d before: sent %d, got %+v in %d batches", before, sent, got, len(batches))
		}
		for _, batch := range batches {
			open := 0
			for _, e := range batch {
				if (e.Point == 0) != (open > 0) {
					t.Fatalf("%d before: %+v with %d continuations to come", before, e, open)
				}
				open += int(e.Flags>>attunev1.RecordFollow) - min(open, 1)
			}
			if open != 0 {
				t.Fatalf("%d before: a batch ends within a record", before)
			}
		}
	}
}
