// SPDX-License-Identifier: Apache-2.0

package service

import (
	"context"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/attune-hpc/attune/analyzer/fold"
	"github.com/attune-hpc/attune/internal/authn"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// finish ends the session as asked.
func (h *hosted) finish(e ending) {
	if e.over != nil {
		h.mu.Lock()
		h.over = e.over
		h.mu.Unlock()
	}
	ctx, cancel := context.WithTimeout(context.Background(), endPatience)
	defer cancel()
	if e.leave {
		h.moveOn(ctx)
	} else {
		h.conclude(ctx, e)
	}
	h.service.mu.Lock()
	defer h.service.mu.Unlock()
	delete(h.service.hosted, h.key)
}

// moveOn leaves the session to another Analyzer, with its record as it stands;
// unless that one has it already.
func (h *hosted) moveOn(ctx context.Context) {
	h.mu.Lock()
	taken := h.over == errMoved //nolint:errorlint // it is that very value
	h.mu.Unlock()
	if sum, err := h.analyzer.Summary(ctx); err == nil && !taken {
		h.publish(sum)
	}
	h.analyzer.Abandon(ctx)
	h.log.Info("session left to the next Analyzer")
}

// conclude undoes what was changed, unless it is to be kept, has the controllers
// leave, and keeps the report.
func (h *hosted) conclude(ctx context.Context, e ending) {
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
	if err := h.service.reports.put(h.snapshot().GetId(), r); err != nil {
		h.log.Error("report is lost", "error", err)
	}
	record := h.ended(sum, sumErr == nil) // whoever sees it ended finds the report
	h.service.recorder.put(record)
	h.log.Info("session ended", "reason", e.reason, "processes", record.GetProcesses(), "kept", record.GetKept(), "gain", record.GetGain())
}

// dismiss has the controllers leave.
func (h *hosted) dismiss(ctx context.Context, keep []string) {
	ctx, cancel := context.WithTimeout(ctx, dismissPatience)
	defer cancel()
	if err := h.Dismiss(ctx, keep); err != nil {
		h.log.Warn("controllers are left behind; they give back what is changed by themselves", "error", err)
	}
}

// ended returns the last record and notes it for the next session of the same
// execution.
func (h *hosted) ended(sum fold.Summary, known bool) *attunev1.SessionRecord {
	h.mu.Lock()
	if known {
		update(h.record, sum)
	}
	h.record.State, h.record.EndedUnixNano = attunev1.SessionState_SESSION_STATE_ENDED, time.Now().UnixNano()
	h.record.Running = 0
	record := proto.CloneOf(h.record)
	h.mu.Unlock()
	h.service.mu.Lock()
	defer h.service.mu.Unlock()
	if o := h.service.owned[h.key.registration]; o != nil {
		o.end(record)
	}
	return record
}

// update brings a record up to date.
func update(r *attunev1.SessionRecord, sum fold.Summary) {
	if sum.Processes == 0 {
		return // a session that was taken over has not heard of them yet
	}
	if r.User == nil {
		r.User = authn.OfUser(sum.UID)
	}
	r.CommandLine, r.Hosts = sum.Command, sum.Hosts
	r.Processes, r.Running = uint32(sum.Processes), uint32(sum.Running)
	r.Gain, r.KeptChanges = sum.Gain, sum.Kept
	r.Kept = max(r.Kept, uint32(len(sum.Kept))) // those of processes that have ended are in force no more
}
