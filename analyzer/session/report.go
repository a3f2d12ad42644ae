// SPDX-License-Identifier: Apache-2.0

package session

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/attune-hpc/attune/analyzer/core"
	"github.com/attune-hpc/attune/analyzer/report"
	"github.com/attune-hpc/attune/internal/hits"
	"github.com/attune-hpc/attune/internal/pointtext"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// Report returns the account of the session so far, or of the whole session
// once it has ended. What the session does not know (exit, version, state of
// the tunlets' processes) is left to the caller; Tunlets is empty.
func (s *Session) Report(ctx context.Context) (*report.Report, error) {
	r, err := ask(ctx, s, s.report)
	if err != nil {
		return nil, fmt.Errorf("collect the report: %w", err)
	}
	return r, nil
}

// report collects the account.
func (s *Session) report() *report.Report {
	r := report.New()
	r.Command, r.Mode = append(r.Command, s.cfg.Command...), s.cfg.Core.Mode.String()
	r.StartedAt, r.WallSeconds = s.start, s.now().Seconds()
	r.Remarks = append(r.Remarks, s.remarks...)
	r.Events, r.Overhead = s.eventCounts(), s.overhead()
	for _, p := range s.order {
		r.Processes = append(r.Processes, p.report())
	}
	asked := slices.Concat(s.points.retired, s.points.list)
	slices.SortFunc(asked, func(a, b *point) int { return cmp.Compare(a.order, b.order) })
	for _, p := range asked {
		r.Points = append(r.Points, p.report()...)
	}
	views := s.core.Proposals()
	slices.SortStableFunc(views, func(a, b core.ProposalView) int { return cmp.Compare(a.ProposedAt, b.ProposedAt) })
	for _, v := range views {
		s.reportProposal(r, v)
	}
	for _, v := range s.core.Refusals() {
		r.Refused = append(r.Refused, refused(v))
	}
	s.omissions(r)
	return r
}

// omissions says what there was no room for.
func (s *Session) omissions(r *report.Report) {
	note := func(n int, what string) {
		if n > 0 {
			r.Remarks = append(r.Remarks, report.Remark{Seconds: r.WallSeconds, From: "attune", Text: fmt.Sprintf("%d %s are not listed", n, what)})
		}
	}
	note(s.omitted, "further processes that have ended")
	note(s.core.Forgotten(), "further proposals")
	note(s.points.omitted, "further measure points that were given back")
}

// reportProposal adds a proposal where it belongs.
func (s *Session) reportProposal(r *report.Report, v core.ProposalView) {
	switch v.State {
	case core.StateAdvised:
		r.Advice = append(r.Advice, s.advice(v))
	case core.StateRefused:
		r.Refused = append(r.Refused, refused(v))
	default:
		for _, ch := range v.Changes {
			r.Changes = append(r.Changes, s.change(v, ch))
		}
	}
}

// change returns one change of a proposal.
func (s *Session) change(v core.ProposalView, ch core.ChangeView) report.Change {
	out := report.Change{
		ID: ch.ID, Tunlet: v.Tunlet, Proposal: v.ID, Advice: v.AdviceID,
		Process: s.pidOf(ch.Process), Host: s.hostOf(ch.Process), Rank: s.rankOf(ch.Process), Knob: ch.Knob, Action: ch.Action,
		Old: report.ValueOf(ch.Result.GetOldValue()), New: newValue(ch), SafePoint: ch.Result.GetSafePoint(),
		ProposedAt: v.ProposedAt.Seconds(), StoppedSeconds: time.Duration(ch.Result.GetStoppedNanos()).Seconds(),
		PredictedGain: v.PredictedGain, Prediction: string(v.Prediction), Why: v.Why,
		Verdict: verdict(v.State), Reason: reason(v, ch),
	}
	if ch.AppliedAt > 0 {
		at, sec := s.start.Add(ch.AppliedAt), ch.AppliedAt.Seconds()
		out.AppliedAt, out.AppliedSeconds = &at, &sec
	}
	if ch.UndoneAt > 0 && ch.Outcome == attunev1.Outcome_OUTCOME_UNDONE {
		sec := ch.UndoneAt.Seconds()
		out.UndoneSeconds = &sec
	}
	if v.Judgement != nil {
		out.Objective = s.objective(v.Tunlet, v.Scope, v.Judgement)
	}
	return out
}

// reason returns why a change has its verdict: its own trouble first.
func reason(v core.ProposalView, ch core.ChangeView) string {
	failed := ch.Outcome == attunev1.Outcome_OUTCOME_REFUSED || ch.Outcome == attunev1.Outcome_OUTCOME_FAILED
	switch {
	case failed && ch.Result.GetReason() != "":
		return ch.Result.GetReason()
	case v.Reason == "":
		return v.State.String() + " when this report was written"
	}
	return v.Reason
}

// verdict returns the verdict that a state means.
func verdict(st core.State) string {
	switch st {
	case core.StateKept:
		return report.VerdictKept
	case core.StateUndone:
		return report.VerdictUndone
	case core.StateFailed:
		return report.VerdictFailed
	}
	return report.VerdictUnjudged
}

// advice returns a proposal as advice.
func (s *Session) advice(v core.ProposalView) report.Advice {
	a := report.Advice{
		ID: v.AdviceID, Tunlet: v.Tunlet, Actions: actions(v), Processes: []int{}, Why: v.Why,
		PredictedGain: v.PredictedGain, Confidence: v.Confidence, Seconds: v.ProposedAt.Seconds(),
	}
	for _, ch := range v.Changes {
		if pid := s.pidOf(ch.Process); !slices.Contains(a.Processes, pid) {
			a.Processes = append(a.Processes, pid)
		}
	}
	return a
}

// refused returns a proposal as refused.
func refused(v core.ProposalView) report.Refused {
	return report.Refused{
		Tunlet: v.Tunlet, Proposal: v.ID, Actions: actions(v), Reason: v.Reason,
		Times: max(1, v.Times), Seconds: v.ProposedAt.Seconds(),
	}
}

// actions returns what a proposal does, each action once.
func actions(v core.ProposalView) []string {
	out := []string{}
	for _, ch := range v.Changes {
		if !slices.Contains(out, ch.Action) {
			out = append(out, ch.Action)
		}
	}
	return out
}

// rankOf returns the MPI rank of a process; nil if it has none.
func (s *Session) rankOf(id uint64) *int {
	if p := s.processes[id]; p != nil {
		return p.rank()
	}
	return nil
}

// rank returns the MPI rank; nil if there is none.
func (p *process) rank() *int {
	if p.info.Rank == nil {
		return nil
	}
	rank := int(p.info.GetRank())
	return &rank
}

// report returns the process as the report has it.
func (p *process) report() report.Process {
	out := report.Process{
		PID: p.pid(), ParentPID: int(p.info.GetParentPid()), Host: p.info.GetHost(),
		Exe: p.info.GetExecutable(), SHA256: p.info.GetExecutableSha256(), Rank: p.rank(),
		StartedSeconds: p.started.Seconds(), ReplacedByExec: p.end.GetReplacedByExec(), Mechanisms: []string{},
	}
	var closed []string
	for _, m := range p.info.GetMechanisms() {
		if !m.GetAvailable() {
			closed = append(closed, m.GetName()+": "+cmp.Or(m.GetReason(), "not available"))
			continue
		}
		out.Mechanisms = append(out.Mechanisms, m.GetName())
		out.Instrumented = out.Instrumented || m.GetName() != "proc" && m.GetName() != "vm_write"
	}
	out.NotInstrumented = strings.Join(closed, "; ")
	if !out.Instrumented && len(closed) == 0 {
		out.NotInstrumented = report.ShortLived
		if !p.ended {
			out.NotInstrumented = "not under control yet"
		}
	}
	if p.ended {
		sec := p.endedAt.Seconds()
		out.EndedSeconds = &sec
	}
	if p.end != nil && p.end.WaitStatus != nil && !out.ReplacedByExec {
		out.Exit = exitOf(syscall.WaitStatus(p.end.GetWaitStatus()))
	}
	return out
}

// exitOf translates a wait status.
func exitOf(ws syscall.WaitStatus) *report.Exit {
	if ws.Signaled() {
		return &report.Exit{Signal: report.SignalName(ws.Signal())}
	}
	code := ws.ExitStatus()
	return &report.Exit{Code: &code}
}

// report returns a point as the report has it: one entry per tunlet and state.
func (p *point) report() []report.Point {
	numbers := map[statusKey]int{}
	for k, n := range p.past {
		numbers[k] += n
	}
	for _, st := range p.status {
		numbers[keyOfStatus(st)]++
	}
	if len(numbers) == 0 {
		numbers[statusKey{}] = 0
	}
	keys := make([]statusKey, 0, len(numbers))
	for k := range numbers {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, func(a, b statusKey) int {
		return cmp.Or(cmp.Compare(a.state, b.state), cmp.Compare(a.mechanism, b.mechanism), cmp.Compare(a.reason, b.reason))
	})
	var out []report.Point
	for _, sub := range p.askedBy {
		for i, k := range keys {
			e := report.Point{
				Tunlet: sub.tunlet.name, ID: sub.id, Target: targetText(p.spec), State: cmp.Or(hits.StateName(k.state), "unanswered"),
				Mechanism: k.mechanism, Reason: k.reason, Processes: numbers[k], CostNanos: k.cost, CostMeasured: k.costMeasured,
			}
			if k.state == attunev1.PointState_POINT_STATE_PLACED {
				e.LateSeconds = p.late.Seconds()
			}
			if i == 0 { // the others are of the same point
				e.Hits = p.hits
				e.Measure(p.spec, valueOf(sub.id, p.spec), p.sums)
				e.Steps = p.steps
			}
			out = append(out, e)
		}
	}
	return out
}

// valueOf is what people call the value of a point that aggregates sum up;
// empty: only hits are counted. Those that people have written say so.
func valueOf(id string, spec *attunev1.MeasurePoint) string {
	text, _, _ := strings.Cut(id, " in ") // the process, see analyzer.asker
	if read, err := pointtext.Parse(text); err == nil {
		return read.Value
	}
	if spec.GetPlace() == attunev1.Place_PLACE_BOTH && spec.GetValueCapture() == "" {
		return "time"
	}
	return cmp.Or(spec.GetValueCapture(), "value")
}

// eventCounts returns what came and what was lost. What the controllers say
// themselves is newer and more complete than what their events told.
func (s *Session) eventCounts() report.Events {
	e := report.Events{
		Records: s.counts.records, Aggregates: s.counts.aggregates, Samples: s.counts.samples, Hits: s.counts.hits,
		Received: s.counts.records + s.counts.aggregates + s.counts.samples,
		Lost:     report.Lost{Analyzer: s.lostRecords.Load()},
	}
	for _, c := range s.controllers {
		e.Lost.Ring += max(c.ended.lostRing, c.status.GetRecordsLostRing())
		e.Lost.Slot += max(c.ended.lostSlot, c.status.GetRecordsLostSlot())
		e.Lost.Queue += max(c.ended.lostQueue, c.status.GetRecordsLostQueue())
		e.Lost.BPF += max(c.ended.lostBPF, c.status.GetRecordsLostBpf())
	}
	for _, n := range s.droppedByTunlet() {
		e.Lost.Tunlet += n
	}
	return e
}

// overhead adds up what the controllers say of themselves.
func (s *Session) overhead() report.Overhead {
	var o report.Overhead
	for _, c := range s.controllers {
		o.ControllerCPUSeconds += c.status.GetCpuSeconds()
		o.MemoryPeakBytes = max(o.MemoryPeakBytes, c.status.GetPeakResidentBytes())
		o.ProbeSeconds += c.status.GetProbeSeconds()
	}
	return o
}

// Dropped returns how many events each tunlet did not get because it was too
// slow.
func (s *Session) Dropped(ctx context.Context) (map[string]uint64, error) {
	return ask(ctx, s, s.droppedByTunlet)
}

// droppedByTunlet adds up over all instances of each tunlet.
func (s *Session) droppedByTunlet() map[string]uint64 {
	out := map[string]uint64{}
	for name, n := range s.droppedBefore {
		out[name] += n
	}
	for name, t := range s.tunlets {
		out[name] += t.worker.lost()
	}
	return out
}
