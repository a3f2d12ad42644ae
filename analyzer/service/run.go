// SPDX-License-Identifier: Apache-2.0

package service

import (
	"context"
	"time"

	"github.com/attune-hpc/attune/analyzer/fold"
	"github.com/attune-hpc/attune/internal/metrics"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

const (
	// lookEvery is how often a session is looked at when nothing happens, and
	// lookAgain how soon when something does.
	lookEvery = time.Second
	lookAgain = 100 * time.Millisecond
	// lookPatience is how long a busy session may take to say how it stands.
	lookPatience = 2 * time.Second
	// endPatience is how long changes may take to be undone, and dismissPatience
	// controllers to leave.
	endPatience     = 10 * time.Second
	dismissPatience = 5 * time.Second
)

// run looks after the session until it ends, and returns what finish does.
func (h *hosted) run() *attunev1.SessionRecord {
	every := time.NewTicker(lookEvery)
	defer every.Stop()
	for {
		select {
		case e := <-h.ends:
			return h.finish(e)
		case <-h.changed:
		case <-every.C:
		}
		if h.look(h.now()) {
			return h.finish(ending{})
		}
		if e, asked := h.rest(); asked {
			return h.finish(e)
		}
	}
}

// rest lets things happen, to be seen together, unless the session is to end.
func (h *hosted) rest() (e ending, asked bool) {
	timer := time.NewTimer(lookAgain)
	defer timer.Stop()
	select {
	case e := <-h.ends:
		return e, true
	case <-timer.C:
		return ending{}, false
	}
}

// look does what the session's state asks for. It reports whether it is over.
func (h *hosted) look(now time.Time) bool {
	ctx, cancel := context.WithTimeout(context.Background(), lookPatience)
	defer cancel()
	sum, err := h.analyzer.Summary(ctx)
	if err != nil {
		return false // it is busy
	}
	h.count(sum.Figures)
	h.publish(sum)
	h.startTunlets(now, sum)
	if sum.Running > 0 || sum.Controllers > 0 {
		h.idleFrom = time.Time{}
		return false
	}
	if h.idleFrom.IsZero() {
		h.idleFrom = now
	}
	return h.endsIdle(h.idleFrom, now)
}

// startTunlets starts the tunlets of a session that is worth them.
func (h *hosted) startTunlets(now time.Time, sum fold.Summary) {
	if h.tunlets || sum.Running == 0 {
		return
	}
	young := now.Sub(h.Start()) < h.delay
	if young && len(sum.Kept) == 0 { // what was kept must not stay without its tunlet
		return
	}
	h.tunlets = true
	if err := h.analyzer.StartTunlets(h.ctx); err != nil {
		h.log.Warn("not every tunlet can be used", "error", err)
	}
}

// finish ends the session as asked. It returns its last record; nil if another
// Analyzer goes on with it.
func (h *hosted) finish(e ending) *attunev1.SessionRecord {
	if e.over != nil {
		h.mu.Lock()
		h.over = e.over
		h.mu.Unlock()
	}
	ctx, cancel := context.WithTimeout(context.Background(), endPatience)
	defer cancel()
	if e.leave {
		h.moveOn(ctx, e.over)
		return nil
	}
	return h.conclude(ctx, e)
}

// moveOn leaves the session to another Analyzer, with its record as it stands;
// unless that one has it already.
func (h *hosted) moveOn(ctx context.Context, over error) {
	taken := over == errMoved //nolint:errorlint // it is that very value
	if sum, err := h.analyzer.Summary(ctx); err == nil && !taken {
		h.published = published{} // the next Analyzer has nothing but the record
		h.publish(sum)
	}
	h.analyzer.Abandon(ctx)
	h.countLast(ctx)
	h.log.Info("session left to the next Analyzer")
}

// conclude undoes what was changed, unless it is to be kept, has the controllers
// leave, keeps the report and returns the last record.
func (h *hosted) conclude(ctx context.Context, e ending) *attunev1.SessionRecord {
	var keep []string
	if e.keep {
		var err error
		if keep, err = h.Keep(ctx); err != nil {
			h.log.Warn("changes are not kept", "error", err)
		}
	}
	sum, sumErr := h.analyzer.Summary(ctx)
	if err := h.analyzer.Settle(ctx); err != nil {
		h.log.Warn("not everything was undone", "error", err)
	}
	h.dismiss(ctx, keep)
	r := h.analyzer.Finish(ctx, &attunev1.RecordedExit{Reason: e.reason})
	h.countLast(ctx)
	record := h.lastRecord(sum, sumErr == nil)
	if err := h.reports.put(record, r); err != nil {
		h.log.Error("report is lost", "error", err)
		h.figures.metrics.Add(metrics.ReportsLost, 1)
	}
	h.end(record) // whoever sees it ended finds the report
	h.recorder.put(record)
	h.log.Info("session ended", "reason", e.reason, "processes", record.GetProcesses(), "kept", record.GetKept(), "gain", record.GetGain())
	return record
}

// countLast counts what has come since the session was looked at last, of one that is over.
func (h *hosted) countLast(ctx context.Context) {
	if last, err := h.analyzer.Summary(ctx); err == nil { // it only fails while it is busy
		h.count(last.Figures)
	}
}

// dismiss has the controllers leave.
func (h *hosted) dismiss(ctx context.Context, keep []string) {
	ctx, cancel := context.WithTimeout(ctx, dismissPatience)
	defer cancel()
	if err := h.Dismiss(ctx, keep); err != nil {
		h.log.Warn("controllers are left behind; they give back what is changed by themselves", "error", err)
	}
}
