// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"fmt"
	"io"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/attune-hpc/attune/proto/attune/series"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
	"github.com/attune-hpc/attune/tunlets/sdk"
)

// transcript writes what a tunlet decides, a line each: the time in seconds,
// and what it does.
type transcript struct {
	w         io.Writer
	tunlet    string
	objective *attunev1.Objective
	processes map[uint64]*attunev1.Process // the driver's
	values    map[string][]float64         // of the objective, by scope
	err       error                        // the first one of w
}

func newTranscript(w io.Writer, info *attunev1.DescribeResponse, processes map[uint64]*attunev1.Process) *transcript {
	t := &transcript{
		w: w, tunlet: info.GetName(), objective: info.GetObjective(), processes: processes, values: map[string][]float64{},
	}
	t.write("# tunlet %s %s\n", info.GetName(), info.GetVersion())
	return t
}

func (t *transcript) write(format string, args ...any) {
	if t.err == nil {
		_, t.err = fmt.Fprintf(t.w, format, args...)
	}
}

// line writes a line. What the tunlet says may have several: they become one.
func (t *transcript) line(at time.Duration, format string, args ...any) {
	text := strings.Join(strings.Fields(fmt.Sprintf(format, args...)), " ")
	t.write("%s %s\n", seconds(at), text)
}

// process names a process.
func (t *transcript) process(id uint64) string {
	p := t.processes[id]
	switch {
	case id == 0:
		return "every process"
	case p == nil:
		return fmt.Sprintf("process %d", id)
	case p.Rank != nil:
		return fmt.Sprintf("process %d (%s, rank %d)", id, path.Base(p.GetExecutable()), p.GetRank())
	}
	return fmt.Sprintf("process %d (%s)", id, path.Base(p.GetExecutable()))
}

func (t *transcript) all(ids []uint64) string {
	if len(ids) == 0 {
		return t.process(0)
	}
	var names []string
	for _, id := range ids {
		names = append(names, t.process(id))
	}
	return strings.Join(names, ", ")
}

func (t *transcript) point(at time.Duration, spec *attunev1.MeasurePoint) {
	t.line(at, "measures %q: %s in %s", spec.GetId(), targetText(spec), t.all(spec.GetProcesses()))
}

func targetText(spec *attunev1.MeasurePoint) string {
	switch k := spec.GetTarget().(type) {
	case *attunev1.MeasurePoint_Hook:
		return "hook " + k.Hook
	case *attunev1.MeasurePoint_Function:
		return fmt.Sprintf("function %s:%s", k.Function.GetObject(), strings.Join(k.Function.GetSymbols(), ","))
	case *attunev1.MeasurePoint_Usdt:
		return fmt.Sprintf("static probe %s:%s:%s", k.Usdt.GetObject(), k.Usdt.GetProvider(), k.Usdt.GetName())
	}
	return "nothing"
}

func (t *transcript) details(at time.Duration, w *attunev1.TableWant) {
	var kinds []string
	for _, table := range w.GetTables() {
		kinds = append(kinds, series.TableID(table).String())
	}
	if len(kinds) == 0 {
		t.line(at, "wants no details of %s", t.process(w.GetProcess()))
		return
	}
	t.line(at, "wants details of %s: %s", t.process(w.GetProcess()), strings.Join(kinds, ", "))
}

func (t *transcript) proposal(at time.Duration, p *attunev1.Proposal) {
	t.line(at, "proposes %q, by scope %q: gain %.3g predicted, confidence %.3g; %s",
		p.GetId(), p.GetScope(), p.GetPredictedGain(), p.GetConfidence(), p.GetReason())
	for _, c := range p.GetChanges() {
		t.write("%s   %s: %s\n", seconds(at), t.process(c.GetProcess()), attunev1.ActionText(c.GetAction()))
	}
}

func (t *transcript) withdrawal(at time.Duration, w *attunev1.Withdrawal) {
	t.line(at, "withdraws %q in %s: %s", w.GetProposalId(), t.all(w.GetProcesses()), w.GetReason())
}

// said writes what the tunlet says to people: it remarks or explains.
func (t *transcript) said(at time.Duration, verb string, m *attunev1.Remark) {
	if m.GetProcess() == 0 {
		t.line(at, "%s: %s", verb, m.GetText())
		return
	}
	t.line(at, "%s of %s: %s", verb, t.process(m.GetProcess()), m.GetText())
}

// state writes what the tunlet is told of a proposal.
func (t *transcript) state(at time.Duration, id string, state attunev1.ProposalState, reason string) {
	if reason != "" {
		reason = ": " + reason
	}
	t.line(at, "  %q is %s%s", id, sdk.ProposalState(state), reason)
}

func (t *transcript) verdict(at time.Duration, ask *attunev1.EvaluateRequest, v *attunev1.EvaluateResponse) {
	reason := ""
	if v.GetReason() != "" {
		reason = ": " + v.GetReason()
	}
	t.line(at, "  %q from %.4g to %.4g, suggested %s: says %s%s", ask.GetProposalId(),
		ask.GetBefore().GetMedian(), ask.GetAfter().GetMedian(), sdk.Verdict(ask.GetSuggested()), sdk.Verdict(v.GetVerdict()), reason)
}

// objectives keeps values for the end: a line for each would hide the rest.
func (t *transcript) objectives(list []*attunev1.ObjectiveSample) {
	for _, o := range list {
		t.values[o.GetScope()] = append(t.values[o.GetScope()], o.GetValue())
	}
}

// end writes what is left to say, of the recording too.
func (t *transcript) end(at time.Duration, awake bool, o *outline) {
	for _, scope := range slices.Sorted(maps.Keys(t.values)) {
		values := t.values[scope]
		t.line(at, "objective %s, scope %q: %d samples, median %.4g %s",
			t.objective.GetName(), scope, len(values), sdk.Median(values), t.objective.GetUnit())
	}
	if o.dropped > 0 {
		t.line(at, "the recording lacks %d batches of measured data: its disk was too slow", o.dropped)
	}
	switch {
	case o.err != nil:
		t.line(at, "the recording ends early: %v", o.err)
	case !awake:
		t.line(at, "ended: none of its conditions held, it was not started")
	default:
		t.line(at, "ended")
	}
}
