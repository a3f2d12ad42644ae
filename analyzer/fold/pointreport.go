// SPDX-License-Identifier: Apache-2.0

package fold

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"

	"google.golang.org/protobuf/proto"

	"github.com/attune-hpc/attune/analyzer/report"
	"github.com/attune-hpc/attune/internal/hits"
	"github.com/attune-hpc/attune/internal/pointtext"
	"github.com/attune-hpc/attune/internal/symname"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// shares are the states of the point with what there is in each, and the states in the
// order in which the report has them. Hits in processes whose state is not known are the
// first one's.
func (p *point) shares() (map[statusKey]share, []statusKey) {
	shares, rest := maps.Clone(p.past), p.hits
	for process, st := range p.status {
		shares[keyOf(st)] = shares[keyOf(st)].plus(1, p.hitsIn[process])
	}
	if len(shares) == 0 {
		shares[statusKey{}] = share{}
	}
	for _, s := range shares {
		rest -= s.hits
	}
	keys := slices.SortedFunc(maps.Keys(shares), func(a, b statusKey) int {
		return cmp.Or(cmp.Compare(a.state, b.state), cmp.Compare(a.mechanism, b.mechanism), cmp.Compare(a.reason, b.reason),
			cmp.Compare(a.cost, b.cost), strings.Compare(strconv.FormatBool(a.costMeasured), strconv.FormatBool(b.costMeasured)))
	})
	shares[keys[0]] = shares[keys[0]].plus(0, rest)
	return shares, keys
}

// report returns the point as the report has it: one entry per asker and state.
func (p *point) report() (out []report.Point) {
	shares, keys := p.shares()
	for _, o := range p.askedBy {
		for i, k := range keys {
			e := report.Point{
				Tunlet: o.name, ID: o.shown, Target: targetText(p.spec), State: cmp.Or(hits.StateName(k.state), "unanswered"),
				Mechanism: k.mechanism, Reason: k.reason, Processes: shares[k].processes, Hits: shares[k].hits, CostNanos: k.cost, CostMeasured: k.costMeasured,
			}
			if k.state == attunev1.PointState_POINT_STATE_PLACED {
				e.LateSeconds = p.late.Seconds()
			}
			if i == 0 { // the others are of the same point
				e.Measure(p.spec, valueOf(o.id, p.spec), p.sums)
				e.Steps, e.Captures = slices.Clone(p.steps.list), o.tally.report()
			}
			out = append(out, e)
		}
	}
	return out
}

// rates returns the point as the live view has it, once per asker.
func (p *point) rates() (out []report.PointRate) {
	mechanism := ""
	for _, st := range p.status {
		if st.GetState() == attunev1.PointState_POINT_STATE_PLACED {
			mechanism = st.GetMechanism()
		}
	}
	for _, o := range p.askers {
		out = append(out, report.PointRate{
			Tunlet: o.name, Target: targetText(p.spec), Mechanism: mechanism, PerSecond: p.rate,
		})
	}
	return out
}

// probes returns every measure point in every running process that has answered,
// once for each asker, with the number of the wish.
func (ps *points) probes(processes []*process) (out []*attunev1.Probe) {
	for _, p := range ps.list {
		if p.over {
			continue
		}
		for _, o := range p.askers {
			for _, process := range processes {
				if st := p.status[process.handle]; st != nil && !process.ended {
					out = append(out, &attunev1.Probe{
						Number: o.number, Text: o.id, Owner: o.name, Pid: int32(process.info.PID), Executable: process.info.Exe,
						Status: proto.CloneOf(st), Hits: p.hitsIn[process.handle],
					})
				}
			}
		}
	}
	return out
}

// valueOf is what people call the value of a point that aggregates sum up;
// empty: only hits are counted. Those that people have written say so.
func valueOf(id string, spec *attunev1.MeasurePoint) string {
	if read, err := pointtext.Parse(id); err == nil {
		return read.Value
	}
	if spec.GetPlace() == attunev1.Place_PLACE_BOTH && spec.GetValueCapture() == "" {
		return "time"
	}
	return cmp.Or(spec.GetValueCapture(), "value")
}

// targetText says what a point watches.
func targetText(spec *attunev1.MeasurePoint) string {
	if f := spec.GetFunction(); f != nil {
		symbols := demangled(f.GetSymbols())
		if f.GetObject() == "" {
			return symbols
		}
		return f.GetObject() + ":" + symbols
	}
	if u := spec.GetUsdt(); u != nil {
		return "static probe " + u.GetObject() + ":" + u.GetProvider() + ":" + u.GetName()
	}
	return "hook " + spec.GetHook()
}

// demangled lists symbols as their source code has them.
func demangled(symbols []string) string {
	names := make([]string, 0, len(symbols))
	for _, s := range symbols {
		names = append(names, symname.Demangle(s))
	}
	return strings.Join(names, ", ")
}
