// SPDX-License-Identifier: Apache-2.0

package fold

import (
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/attune-hpc/attune/analyzer/report"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// owned is the owner's objective, and what was measured of it.
type owned struct {
	*attunev1.Objective // nil: there is none
	values              int
	sum                 float64 // of values, each as often as its interval has seconds
	seconds             float64 // of all intervals
	latest              float64
	end                 time.Duration // of the latest interval
}

// begin takes over what is to be better.
func (o *owned) begin(objective *attunev1.Objective) { o.Objective = proto.CloneOf(objective) }

// take takes over a value. Where the first interval began is not known.
func (o *owned) take(m *attunev1.RecordedMeasured) {
	end := time.Duration(m.GetEndNanos())
	if length := (end - o.end).Seconds(); o.values > 0 && length > 0 {
		o.sum += m.GetValue() * length
		o.seconds += length
	}
	o.values++
	o.latest, o.end = m.GetValue(), max(o.end, end)
}

// report returns it as the report has it; nil: there is none.
func (o *owned) report() *report.OwnObjective {
	if o.Objective == nil {
		return nil
	}
	out := &report.OwnObjective{
		Name: o.GetName(), Unit: o.GetUnit(), Description: o.GetDescription(), LowerIsBetter: o.GetLowerIsBetter(), Values: o.values,
	}
	mean := o.latest
	if o.seconds > 0 {
		mean = o.sum / o.seconds
	}
	if o.values > 0 {
		out.Mean, out.Latest = report.Finite(mean), report.Finite(o.latest)
	}
	return out
}

// shown returns its latest value for the live view, if there is one.
func (o *owned) shown() (out []report.ObjectiveValue) {
	if o.values > 0 {
		out = append(out, report.ObjectiveValue{Tunlet: "objective", Name: o.GetName(), Unit: o.GetUnit(), Scope: o.GetName(), Value: o.latest})
	}
	return out
}
