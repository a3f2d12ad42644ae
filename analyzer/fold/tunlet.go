// SPDX-License-Identifier: Apache-2.0

package fold

import (
	"cmp"
	"slices"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/attune-hpc/attune/analyzer/report"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

const (
	// maxScopes bounds the latest objectives of a tunlet, for the live view.
	maxScopes = 64
	// shownObjectives bounds those of all that are shown.
	shownObjectives = 64
	// shownFor is how long a value of an objective is shown: what it is about may have
	// ended. A session samples once a second at least.
	shownFor = 5 * time.Second
)

// tunlets are those that the session knows, and what their host says of them.
type tunlets struct {
	byName map[string]*tunlet
	hosted []report.Tunlet // in the order in which the host has them
	cost   cost            // of their processes
	lost   map[string]uint64
}

// tunlet is one that can be talked to, or could.
type tunlet struct {
	objective *attunev1.Objective
	latest    map[string]objectiveValue // of its objective by scope, bounded
}

// objectiveValue is a value of an objective, and when it came.
type objectiveValue struct {
	value float64
	at    time.Duration
}

// cost is what the tunlets' processes have taken together.
type cost struct {
	cpu    time.Duration
	memory uint64 // bytes, at most at a time
	// own is that of the process of Analyzer and controller; 0: it is not one.
	own time.Duration
}

func newTunlets() tunlets {
	return tunlets{byName: map[string]*tunlet{}, lost: map[string]uint64{}}
}

// ready takes over what a tunlet says of itself.
func (ts *tunlets) ready(info *attunev1.DescribeResponse) {
	ts.byName[info.GetName()] = &tunlet{objective: proto.CloneOf(info.GetObjective()), latest: map[string]objectiveValue{}}
}

// gone notes that a tunlet cannot be talked to any more.
func (ts *tunlets) gone(name string) {
	if t := ts.byName[name]; t != nil {
		clear(t.latest)
	}
}

// objective returns what a tunlet wants to improve; nil: it is not known.
func (ts *tunlets) objective(name string) *attunev1.Objective {
	if t := ts.byName[name]; t != nil {
		return t.objective
	}
	return nil
}

// react keeps the latest values of a tunlet's objective, which came at that time. Where
// there are too many the oldest makes room.
func (ts *tunlets) react(r *attunev1.RecordedReaction, at time.Duration) {
	t := ts.byName[r.GetTunlet()]
	if t == nil {
		return
	}
	for _, o := range r.GetReaction().GetObjectives() {
		if attunev1.CheckObjective(o.GetValue()) != nil { // nothing is judged by it
			continue
		}
		if _, known := t.latest[o.GetScope()]; !known && len(t.latest) >= maxScopes {
			delete(t.latest, t.stalest())
		}
		t.latest[o.GetScope()] = objectiveValue{o.GetValue(), at}
	}
}

// stalest returns the scope whose latest value is the oldest.
func (t *tunlet) stalest() (stalest string) {
	first := true
	for scope, v := range t.latest {
		if first || v.at < t.latest[stalest].at {
			stalest, first = scope, false
		}
	}
	return stalest
}

// state takes over how a tunlet's process stands.
func (ts *tunlets) state(st *attunev1.RecordedTunletState) {
	i := slices.IndexFunc(ts.hosted, func(t report.Tunlet) bool { return t.Name == st.GetTunlet() })
	if i < 0 {
		i = len(ts.hosted)
		ts.hosted = append(ts.hosted, report.Tunlet{})
	}
	ts.hosted[i] = report.Tunlet{
		Name: st.GetTunlet(), Version: st.GetVersion(), Summary: st.GetSummary(), Path: st.GetPath(), SHA256: st.GetSha256(),
		State: st.GetState(), Reason: st.GetReason(), Restarts: int(st.GetRestarts()), PeakRSSBytes: st.GetPeakResidentBytes(),
	}
}

// spent takes over what their processes have taken so far.
func (ts *tunlets) spent(c *attunev1.RecordedCost) {
	ts.cost = cost{
		cpu: time.Duration(c.GetCpuNanos()), memory: c.GetPeakResidentBytes(), own: time.Duration(c.GetOwnCpuNanos()),
	}
}

// lose takes over how many events each has lost so far.
func (ts *tunlets) lose(all []*attunev1.TunletLoss) {
	for _, t := range all {
		ts.lost[t.GetTunlet()] = t.GetEvents()
	}
}

// objectives returns the first of the latest values of all objectives, as far as they came
// shortly before the given time.
func (ts *tunlets) objectives(at time.Duration) (out []report.ObjectiveValue) {
	for name, t := range ts.byName {
		for scope, v := range t.latest {
			if at-v.at > shownFor {
				continue
			}
			out = append(out, report.ObjectiveValue{
				Tunlet: name, Name: t.objective.GetName(), Unit: t.objective.GetUnit(), Scope: scope, Value: v.value,
			})
		}
	}
	slices.SortFunc(out, func(a, b report.ObjectiveValue) int {
		return cmp.Or(cmp.Compare(a.Tunlet, b.Tunlet), cmp.Compare(a.Scope, b.Scope))
	})
	return out[:min(len(out), shownObjectives)]
}
