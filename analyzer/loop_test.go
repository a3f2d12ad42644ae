// SPDX-License-Identifier: Apache-2.0

package analyzer

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/attune-hpc/attune/analyzer/fold"
	"github.com/attune-hpc/attune/analyzer/report"
	"github.com/attune-hpc/attune/internal/testing/lockedtext"
	"github.com/attune-hpc/attune/tunlets/sdk/recording"
)

// TestLoopKeepsAGain goes the whole way: a real tunlet process, both channels,
// a change that makes the application ten times as fast.
func TestLoopKeepsAGain(t *testing.T) {
	timeline, recorded := new(lockedtext.Text), new(lockedtext.Text)
	a, socket := run(t, Config{
		Mode: "tune", Command: []string{"solver", "in"}, JobID: "j1", Version: "0.1.0",
		TunletDirs: []string{testTunlet.Dir(t, "good")}, Timeline: timeline, Record: recorded, tick: 20 * time.Millisecond,
		OwnCost: func() time.Duration { return 3 * time.Second },
	})
	c := dial(t, socket, "ac1")
	c.start(1, app{slow: 100, fast: 5000})
	s := until(t, a, "kept", state("kept"))
	if len(s.Points) != 1 || s.Points[0].Mechanism != "hook" || s.Processes != 1 || len(s.Objectives) != 1 {
		t.Errorf("snapshot %+v", s)
	}
	if live := a.Report(); live.Finished || len(live.Changes) != 1 {
		t.Errorf("report of the running session: %+v", live)
	} else {
		checkSchema(t, live)
	}
	c.end(1, 3<<8)
	if resp := c.close(); resp.GetMessages() < 10 {
		t.Errorf("the Analyzer counted %d messages", resp.GetMessages())
	}
	r := finish(t, a)
	if n := len(r.Processes); n != 2 || r.Processes[1].PID != 4711 || r.Overhead.ControllerCPUSeconds != 3 || r.Overhead.ProgramCPUSeconds != 2 {
		t.Errorf("%d processes, overhead %+v", n, r.Overhead)
	}
	checkKept(t, r)
	checkRecorded(t, recorded, r)
	checkTimeline(t, timeline, "session_started", "process_started", "proposed", "applying", "applied", "judged", "kept", "process_ended", "session_ended")
}

// checkRecorded makes the report again from the recording: but for the time at which it
// is made, it is the same to the last byte.
func checkRecorded(t *testing.T, file *lockedtext.Text, live *report.Report) {
	t.Helper()
	reader, err := recording.NewReader(strings.NewReader(file.String()))
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	account, err := fold.Recording(reader)
	if err != nil {
		t.Fatal(err)
	}
	var got, want bytes.Buffer
	at := time.Duration(math.Round(live.WallSeconds * 1e9))
	if err := errors.Join(account.Report(at).EncodeJSON(&got), live.EncodeJSON(&want)); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want.String(), got.String()); diff != "" {
		t.Errorf("the report from the recording (-live +recorded):\n%s", diff)
	}
}

// checkKept checks the report of a session that kept one change.
func checkKept(t *testing.T, r *report.Report) {
	t.Helper()
	if len(r.Changes) != 1 {
		t.Fatalf("changes %+v", r.Changes)
	}
	ch := r.Changes[0]
	if ch.Verdict != report.VerdictKept || ch.Process != 1001 || *ch.Rank != 1 || ch.Old.String() != "1" || ch.New.String() != "7" ||
		ch.SafePoint != "malloc hook, thread 1001" || ch.AppliedSeconds == nil || ch.UndoneSeconds != nil {
		t.Errorf("change %+v", ch)
	}
	if o := ch.Objective; o == nil || o.Name != "calls_per_second" || *o.Gain < 40 || *o.P > 0.01 || o.Before.Samples < 5 {
		t.Errorf("objective %+v", ch.Objective)
	}
	p := r.Processes[0]
	if p.PID != 1001 || !p.Instrumented || p.NotInstrumented != "uprobe: needs CAP_BPF" || p.Exit == nil || *p.Exit.Code != 3 {
		t.Errorf("process %+v", p)
	}
	tn := r.Tunlets[0]
	if tn.State != "stopped" || tn.PeakRSSBytes == 0 || tn.Version != "0.0.1" {
		t.Errorf("tunlet %+v", tn)
	}
	if r.Events.Aggregates == 0 || r.Events.Samples == 0 || r.Events.Hits == 0 || r.Events.Lost.Ring != 3 || !r.Finished || r.Version != "0.1.0" {
		t.Errorf("events %+v", r.Events)
	}
}

// checkTimeline checks that kinds came in this order, with others between them.
func checkTimeline(t *testing.T, timeline *lockedtext.Text, want ...string) {
	t.Helper()
	var kinds []string
	last := 0.0
	for line := range strings.Lines(timeline.String()) {
		var e report.Entry
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatal(err)
		}
		if e.Seconds < last {
			t.Errorf("time runs backwards at %s", line)
		}
		last = e.Seconds
		kinds = append(kinds, e.Kind)
	}
	rest := kinds
	for _, kind := range want {
		i := slices.Index(rest, kind)
		if i < 0 {
			t.Fatalf("timeline %v lacks %s", kinds, kind)
		}
		rest = rest[i+1:]
	}
}

// TestLoopUndoes covers the ways in which a change does not stay.
func TestLoopUndoes(t *testing.T) {
	dir := testTunlet.Dir(t, "good")
	tests := []struct {
		name, mode, state, verdict string
		app                        app
		refuse                     bool
	}{
		{name: "a loss", mode: "tune", app: app{slow: 800, fast: 300}, state: "undone", verdict: report.VerdictUndone},
		{name: "no gain", mode: "tune", app: app{slow: 800, fast: 800}, state: "undone", verdict: report.VerdictUndone},
		{name: "refused by the controller", mode: "tune", app: app{slow: 800}, refuse: true, state: "failed", verdict: report.VerdictRefused},
		{name: "advise", mode: "advise", app: app{slow: 100}, state: "advised"},
		{name: "observe", mode: "observe", app: app{slow: 100}, state: "refused"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			a, socket := run(t, Config{Mode: tt.mode, TunletDirs: []string{dir}, tick: 10 * time.Millisecond})
			c := dial(t, socket, "ac1")
			c.mu.Lock()
			c.refuse = tt.refuse
			c.mu.Unlock()
			c.start(1, tt.app)
			until(t, a, tt.state, state(tt.state))
			r := finish(t, a)
			switch {
			case tt.verdict == "" && len(r.Changes) > 0:
				t.Errorf("changes %+v", r.Changes)
			case tt.verdict != "" && (len(r.Changes) != 1 || r.Changes[0].Verdict != tt.verdict || r.Changes[0].Reason == ""):
				t.Errorf("changes %+v", r.Changes)
			case tt.state == "advised" && (len(r.Advice) != 1 || len(r.Advice[0].ID) != 12):
				t.Errorf("advice %+v", r.Advice)
			case tt.state == "refused" && len(r.Refused) != 1:
				t.Errorf("refused %+v", r.Refused)
			}
			c.mu.Lock()
			defer c.mu.Unlock()
			if len(c.changed) > 0 {
				t.Errorf("changes are left in force: %v", c.changed)
			}
		})
	}
}
