// SPDX-License-Identifier: Apache-2.0

package fold

import (
	"fmt"
	"time"

	"github.com/attune-hpc/attune/analyzer/report"
	"github.com/attune-hpc/attune/internal/hits"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// Timeline makes a line of each frame that people want to hear of, as it happens.
type Timeline struct {
	account *Account
	write   func(report.Entry)
}

// NewTimeline returns a timeline that hands each line to write, which must not
// wait. The account, which has to take each frame first, knows who is who.
func NewTimeline(account *Account, write func(report.Entry)) *Timeline {
	return &Timeline{account: account, write: write}
}

// Take takes one frame.
func (t *Timeline) Take(f *attunev1.RecordingFrame) {
	e, ok := t.entry(f)
	if !ok {
		return
	}
	at := time.Duration(f.GetAtNanos())
	e.Time, e.Seconds = t.account.start.Add(at), at.Seconds()
	t.write(e)
}

// entry returns the line of a frame, unless there is none.
func (t *Timeline) entry(f *attunev1.RecordingFrame) (report.Entry, bool) {
	a := t.account
	switch k := f.GetWhat().(type) {
	case *attunev1.RecordingFrame_Decision:
		return t.decision(k.Decision), true
	case *attunev1.RecordingFrame_PointStatus:
		return t.pointStatus(k.PointStatus)
	case *attunev1.RecordingFrame_Process:
		info := k.Process.GetProcess()
		return report.Entry{Kind: "process_started", Process: a.processes.pid(info.GetHandle()), Text: info.GetExecutable()}, a.news
	case *attunev1.RecordingFrame_ProcessGone:
		id := k.ProcessGone.GetEnded().GetProcess()
		return report.Entry{Kind: "process_ended", Process: a.processes.pid(id), Text: a.processes.of(id).info.Exe}, a.news
	case *attunev1.RecordingFrame_Controller:
		return report.Entry{Kind: "controller", Text: k.Controller.GetText()}, true
	case *attunev1.RecordingFrame_Remark:
		return report.Entry{Kind: "remark", Tunlet: k.Remark.GetFrom(), Process: a.processes.pid(k.Remark.GetProcess()), Text: k.Remark.GetText()}, true
	case *attunev1.RecordingFrame_Header:
		app := k.Header.GetApplication()
		return report.Entry{Kind: "session_started", Text: fmt.Sprintf("%s, mode %s", app.GetSessionId(), app.GetMode())}, true
	case *attunev1.RecordingFrame_Finish:
		return report.Entry{Kind: "session_ended"}, true
	}
	return t.tunletEntry(f)
}

// tunletEntry returns the line of news of a tunlet.
func (t *Timeline) tunletEntry(f *attunev1.RecordingFrame) (report.Entry, bool) {
	e := report.Entry{Kind: "tunlet"}
	switch k := f.GetWhat().(type) {
	case *attunev1.RecordingFrame_Tunlet:
		e.Tunlet, e.Text = k.Tunlet.GetInfo().GetName(), "running, version "+k.Tunlet.GetInfo().GetVersion()
	case *attunev1.RecordingFrame_TunletEnd:
		e.Tunlet, e.Text = k.TunletEnd.GetTunlet(), "gone: "+k.TunletEnd.GetReason()
	case *attunev1.RecordingFrame_Sleeper:
		e.Tunlet, e.Text, e.Process = k.Sleeper.GetTunlet(), k.Sleeper.GetText(), t.account.processes.pid(k.Sleeper.GetProcess())
	default:
		return report.Entry{}, false
	}
	return e, true
}

func (t *Timeline) decision(d *attunev1.RecordedDecision) report.Entry {
	e := report.Entry{
		Kind: d.GetKind(), Tunlet: d.GetTunlet(), Proposal: d.GetProposalId(), Text: d.GetReason(),
		Changes: t.account.proposals.entryChanges(d.GetProposal()), Objective: t.account.proposals.comparison(d.GetProposal()),
	}
	if e.Objective != nil {
		e.Objective.Scope = ""
	}
	return e
}

// pointStatus returns a line of what became of a point, where that is news.
func (t *Timeline) pointStatus(st *attunev1.PointStatus) (report.Entry, bool) {
	p := t.account.points.byIndex[st.GetPoint()]
	if p == nil || len(p.askers) == 0 {
		return report.Entry{}, false
	}
	return report.Entry{
		Kind: "point", Tunlet: p.askers[0].name, Point: p.askers[0].shown, Process: t.account.processes.pid(st.GetProcess()), Text: hits.StateText(st),
	}, t.account.news
}
