// SPDX-License-Identifier: Apache-2.0

package fold

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/attune-hpc/attune/analyzer/report"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// asked is a point that two tunlets have asked for, one of them in several instances.
func asked(t *testing.T) *Account {
	t.Helper()
	a := NewAccount()
	a.points.add(&attunev1.AddPoint{Point: 1, Spec: &attunev1.MeasurePoint{}})
	for range 3 {
		a.points.ask(&attunev1.RecordedAsk{Point: 1, Asker: "a", Id: "x"}, 0)
		a.points.ask(&attunev1.RecordedAsk{Point: 1, Asker: "a", Id: "x", Over: true}, 0)
	}
	a.points.ask(&attunev1.RecordedAsk{Point: 1, Asker: "b", Id: "x"}, 0)
	return a
}

func TestReportNamesEachAskerOnce(t *testing.T) {
	if rows := asked(t).Report(0).Points; len(rows) != 2 {
		t.Errorf("rows %+v, want one per tunlet", rows)
	}
}

// TestReportNamesWatchersOnce: those who watch a point come and go, each under a name of its own.
func TestReportNamesWatchersOnce(t *testing.T) {
	a := NewAccount()
	a.points.add(&attunev1.AddPoint{Point: 1, Spec: &attunev1.MeasurePoint{}})
	for i := range 100 {
		name := fmt.Sprintf("%s %d", report.WatchAsker, i)
		a.points.ask(&attunev1.RecordedAsk{Point: 1, Asker: name, Id: "x"}, 0)
		if rates := a.Snapshot(0).Points; len(rates) != 1 || rates[0].Tunlet != name {
			t.Fatalf("at present %+v watch, want %s", rates, name)
		}
		a.points.ask(&attunev1.RecordedAsk{Point: 1, Asker: name, Id: "x", Over: true}, 0)
	}
	if rows := a.Report(0).Points; len(rows) != 1 || rows[0].Tunlet != report.WatchAsker {
		t.Errorf("rows %+v, want one of %s", rows, report.WatchAsker)
	}
}

// TestWishesHaveTheirOwnNumbers: one that is asked for again has the number that it has now.
func TestWishesHaveTheirOwnNumbers(t *testing.T) {
	a := NewAccount()
	a.Take(&attunev1.RecordingFrame{What: &attunev1.RecordingFrame_Process{Process: &attunev1.RecordedProcess{Process: &attunev1.Process{Handle: 1}}}})
	a.points.add(&attunev1.AddPoint{Point: 1, Spec: &attunev1.MeasurePoint{}})
	a.points.state(&attunev1.PointStatus{Point: 1, Process: 1}, 0, 0)
	a.points.ask(&attunev1.RecordedAsk{Point: 1, Asker: "a", Id: "x", Number: 1}, 0)
	a.points.ask(&attunev1.RecordedAsk{Point: 1, Asker: "a", Id: "x", Number: 1, Over: true}, 0)
	a.points.ask(&attunev1.RecordedAsk{Point: 1, Asker: "a", Id: "x", Number: 2}, 0)
	if probes := a.Probes(); len(probes) != 1 || probes[0].GetNumber() != 2 {
		t.Errorf("probes %v, want number 2", probes)
	}
}

// Hits in records count, with what follows them and what is not known left out, and
// make the rate once a second.
func TestHitsAreCounted(t *testing.T) {
	a := asked(t)
	var data []byte
	for _, r := range []attunev1.Record{{Flags: attunev1.RecordContinuation}, {Point: 1}, {Flags: attunev1.RecordContinuation}, {Point: 2}, {Point: 1}} {
		data = attunev1.AppendRecord(data, r)
	}
	a.Take(&attunev1.RecordingFrame{What: &attunev1.RecordingFrame_Records{Records: &attunev1.NamedRecords{Process: 1, Records: data}}})
	a.Take(&attunev1.RecordingFrame{AtNanos: int64(2 * time.Second), What: &attunev1.RecordingFrame_Tick{Tick: &attunev1.RecordedTick{}}})
	s := a.Snapshot(0)
	if len(s.Points) != 1 || s.Points[0].Tunlet != "b" || s.Points[0].PerSecond != 1 {
		t.Errorf("points %+v", s.Points)
	}
	if r := a.Report(0); r.Events.Records != 3 || r.Points[0].Hits != 2 {
		t.Errorf("%d records, %d hits", r.Events.Records, r.Points[0].Hits)
	}
}

// TestHitsByState: hits are told of the processes in which they were, by the mechanism that
// counted them there, also when these have ended, and none is told twice.
func TestHitsByState(t *testing.T) {
	const id = "libc.so.6:write sum n=arg2"
	a := NewAccount()
	a.points.add(&attunev1.AddPoint{Point: 1, Spec: &attunev1.MeasurePoint{ValueCapture: "n"}})
	a.points.ask(&attunev1.RecordedAsk{Point: 1, Asker: report.OwnerName, Id: id}, 0)
	for process, mechanism := range map[uint64]string{1: "got", 2: "uprobe", 3: "uprobe"} {
		a.points.state(&attunev1.PointStatus{
			Point: 1, Process: process, State: attunev1.PointState_POINT_STATE_PLACED, Mechanism: mechanism, CostNanos: 36,
		}, 0, 0)
	}
	for process, n := range map[uint64]uint64{1: 2, 2: 5, 3: 7, 4: 1} { // the last one has not answered
		a.aggregates(&attunev1.AggregateBatch{Aggregates: []*attunev1.Aggregate{{Point: 1, Process: process, Count: n, Sum: 10 * n}}})
	}
	for _, when := range []string{"while they run", "when two have ended"} {
		var text bytes.Buffer
		if err := a.Report(0).WriteText(&text, report.TextOptions{}); err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{id + ": 3 hits, by got", id + ": 12 hits, by uprobe", " in 2 processes\n", "(all)    15 "} {
			if !strings.Contains(text.String(), want) {
				t.Errorf("%s: want %q in\n%s", when, want, &text)
			}
		}
		a.points.processGone(1, false)
		a.points.processGone(2, true)
	}
}

// Why a point is refused may be another text in each process: of many that have ended the
// report tells the number.
func TestReasonsAreBounded(t *testing.T) {
	a := NewAccount()
	a.points.add(&attunev1.AddPoint{Point: 1})
	const ended = 10 * maxStates
	for id := range uint64(ended) {
		a.points.state(&attunev1.PointStatus{
			Point: 1, Process: id, State: attunev1.PointState_POINT_STATE_REFUSED, Reason: fmt.Sprintf("maps of %d: it has ended", id),
		}, int(id), 0)
		a.points.processGone(id, false)
	}
	shares, _ := a.points.byIndex[1].shares()
	total := 0
	for _, s := range shares {
		total += s.processes
	}
	if len(shares) != maxStates+1 || total != ended {
		t.Errorf("%d states of %d processes, want %d of %d", len(shares), total, maxStates+1, ended)
	}
}

func TestRetiredPointsAreCounted(t *testing.T) {
	a := NewAccount()
	for range maxRetired + 2 {
		a.points.add(&attunev1.AddPoint{Point: 1})
		a.points.retire(1)
	}
	rep := a.Report(0)
	if n := len(rep.Remarks); n != 1 || !strings.HasPrefix(rep.Remarks[0].Text, "2 further measure points") {
		t.Errorf("remarks %+v", rep.Remarks)
	}
}

// TestStepsAreBounded: of more steps than there is place for the first and the latest stay, and
// the report says how many are left out.
func TestStepsAreBounded(t *testing.T) {
	a := asked(t)
	const steps = maxSteps + 44
	for n := range steps {
		reason := "too dear"
		if n%2 == 1 {
			reason = ""
		}
		a.points.state(&attunev1.PointStatus{Point: 1, Process: 1, DegradedReason: reason}, 7, time.Duration(n)*time.Second)
	}
	r := a.Report(0)
	listed := r.Points[0].Steps
	a.points.state(&attunev1.PointStatus{Point: 1, Process: 1, DegradedReason: "later"}, 7, 0) // no report changes
	if len(listed) != maxSteps || listed[0].Seconds != 0 || listed[maxSteps-1].Seconds != steps-1 {
		t.Errorf("%d steps, %+v to %+v", len(listed), listed[0], listed[len(listed)-1])
	}
	if len(r.Remarks) != 1 || r.Remarks[0].Text != "44 steps of the overhead budget after the first 128 of a measure point are not listed" {
		t.Errorf("remarks %+v", r.Remarks)
	}
}
