// SPDX-License-Identifier: Apache-2.0

package analyzer

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/attune-hpc/attune/analyzer/core"
	"github.com/attune-hpc/attune/analyzer/fold"
	"github.com/attune-hpc/attune/analyzer/recorder"
	"github.com/attune-hpc/attune/analyzer/report"
	"github.com/attune-hpc/attune/analyzer/session"
)

const (
	// timelinePatience is how long the last lines of the timeline may take.
	timelinePatience = time.Second
	// recordPatience is how long the rest of a recording may take.
	recordPatience = 2 * time.Second
)

// written is what a session is written to as it goes: timeline, audit log and
// recording. What goes wrong with one of them is kept for the report.
type written struct {
	timeline, audit *report.Timeline
	recorder        *recorder.Recorder // nil: nothing is recorded

	mu      sync.Mutex // leaf lock; guards what follows
	lacking []string
}

// newWritten begins them. A recording that cannot be begun is told in the report.
func newWritten(cfg Config) *written {
	w := &written{
		timeline: report.NewTimeline(cfg.Timeline),
		audit:    report.NewTimeline(cfg.Audit),
	}
	if cfg.Record == nil {
		return w
	}
	var err error
	if w.recorder, err = recorder.New(cfg.Record); err != nil {
		w.recorder = nil
		w.lack(recorder.Problem(0, err))
	}
	return w
}

// audited are the kinds of lines, see report.Entry, that the audit log has: what was decided and
// done, and why. Processes and measure points are in the report.
var audited = append(core.RecordKinds(), "session_ended")

// sinks are what the session's frames are told to. The account knows what they mean.
func (w *written) sinks(account *fold.Account) []session.Sink {
	sinks := []session.Sink{fold.NewTimeline(account, func(e report.Entry) {
		w.timeline.Write(e)
		if slices.Contains(audited, e.Kind) {
			w.audit.Write(e)
		}
	})}
	if w.recorder != nil {
		sinks = append(sinks, w.recorder)
	}
	return sinks
}

// close ends them, each within its patience.
func (w *written) close() {
	w.end("timeline", w.timeline)
	w.end("audit log", w.audit)
	if w.recorder == nil {
		return
	}
	if text := recorder.Problem(w.recorder.Close(recordPatience)); text != "" {
		w.lack(text)
	}
}

func (w *written) end(name string, t *report.Timeline) {
	dropped, err := t.Close(timelinePatience)
	if err != nil {
		w.lack(fmt.Sprintf("the %s ends early: %v; %d lines are missing", name, err, dropped))
	} else if dropped != 0 {
		w.lack(fmt.Sprintf("the %s lacks %d lines: its reader was too slow", name, dropped))
	}
}

func (w *written) lack(text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.lacking = append(w.lacking, text)
}

// remarks adds what went wrong so far to a report.
func (w *written) remarks(r *report.Report) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, text := range w.lacking {
		r.Remarks = append(r.Remarks, report.Remark{Seconds: r.WallSeconds, From: report.OwnerName, Text: text})
	}
}
