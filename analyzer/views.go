// SPDX-License-Identifier: Apache-2.0

package analyzer

import (
	"context"
	"time"

	"github.com/attune-hpc/attune/analyzer/fold"
	"github.com/attune-hpc/attune/analyzer/report"
	"github.com/attune-hpc/attune/analyzer/session"
)

// reportPatience is how long a report or snapshot of a running session may
// take to collect.
const reportPatience = time.Second

// views are the ways to look at a session as it stands.
type views struct {
	cfg     Config
	session *session.Session
	account *fold.Account // belongs to the session's loop
	hosted  *hosted
	written *written
}

// view reads the account as things stand.
func view[T any](v views, read func(at time.Duration) T) (T, error) {
	ctx, cancel := context.WithTimeout(context.Background(), reportPatience)
	defer cancel()
	v.hosted.tell(ctx)
	return session.View(ctx, v.session, read)
}

// Report returns the report as things stand.
func (v views) Report() *report.Report {
	r, err := view(v, v.account.Report)
	if err != nil { // cannot happen while the loop lives; say so rather than fail
		r = report.New()
		r.Version, r.JobID, r.Mode, r.StartedAt = v.cfg.Version, v.cfg.JobID, v.cfg.Mode, v.session.Start()
		r.Command = append(r.Command, v.cfg.Command...)
		r.Remarks = append(r.Remarks, report.Remark{From: report.OwnerName, Text: err.Error()})
	}
	v.written.remarks(r)
	return r
}

// Snapshot returns the session as it stands. It is cheap enough to be called
// several times a second; while the loop is too busy to answer within a second
// it returns what is known without it.
func (v views) Snapshot() report.Snapshot {
	out, err := view(v, v.account.Snapshot)
	if err != nil {
		return report.Snapshot{Mode: v.cfg.Mode}
	}
	return out
}

// Summary returns what a list of sessions shows of this one. It is quick.
func (v views) Summary(ctx context.Context) (fold.Summary, error) {
	v.hosted.tell(ctx)
	return session.View(ctx, v.session, func(time.Duration) fold.Summary { return v.account.Summary() })
}
