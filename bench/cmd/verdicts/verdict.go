// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"math"
	"os"
	"slices"

	"github.com/attune-hpc/attune/analyzer/report"
	"github.com/attune-hpc/attune/bench/internal/measure"
	"github.com/attune-hpc/attune/bench/internal/present"
)

// verdict is what Attune said of a change, and what the program's own counter says.
type verdict struct {
	Run     int    `json:"run"`
	Tunlet  string `json:"tunlet"`
	Verdict string `json:"verdict"`
	Reason  string `json:"reason"`
	// Gain is how many times better it was said to be, Low and High the ends of the interval
	// that was stated; NaN where nothing was.
	Gain present.Figure `json:"gain"`
	Low  present.Figure `json:"gain_low"`
	High present.Figure `json:"gain_high"`
	// True is the rate of the program's own counter with the change over that without it, of
	// all the time that it ran with and without, and of a run without Attune; NaN where either
	// is too short.
	True present.Figure `json:"true_gain"`
	// With and Without are how long that was, in seconds.
	With    float64 `json:"seconds_with"`
	Without float64 `json:"seconds_without"`
}

// observed is what is known of a run, and of one without Attune just before it.
type observed struct {
	report          report.Report
	timeline        []report.Entry
	progress, plain []measure.Reading
}

// verdicts returns what the report says of each change that was tried, the last time where it
// was tried again, beside what the program's counter says by the times of the timeline.
func (o observed) verdicts(run int) (all []verdict) {
	for _, c := range tried(o.report.Changes) {
		w := watch(o.timeline, c.Tunlet, c.Proposal)
		stretches := split(o.progress, w.sides)
		if !w.besides && len(o.plain) > 1 {
			first, last := o.plain[0], o.plain[len(o.plain)-1]
			stretches = append(stretches, stretch{off: last.At.Sub(first.At).Seconds(), count: last.Count - first.Count})
		}
		v := verdict{Run: run, Tunlet: c.Tunlet, Verdict: c.Verdict, Reason: c.Reason}
		v.True, v.With, v.Without = compare(stretches)
		v.Gain, v.Low, v.High = stated(c.Objective)
		all = append(all, v)
	}
	return all
}

// tried returns a change of each proposal that was in force.
func tried(changes []report.Change) (all []report.Change) {
	for _, c := range changes {
		if c.AppliedAt == nil {
			continue
		}
		i := slices.IndexFunc(all, func(o report.Change) bool { return o.Tunlet == c.Tunlet && o.Proposal == c.Proposal })
		switch {
		case i < 0:
			all = append(all, c)
		case c.ProposedAt > all[i].ProposedAt:
			all[i] = c
		}
	}
	return all
}

// stated returns the gain that a comparison states, and its interval; NaN where there is none.
func stated(o *report.Objective) (gain, low, high present.Figure) {
	if o == nil || o.Gain == nil || o.GainLow == nil {
		nan := present.Figure(math.NaN())
		return nan, nan, nan
	}
	if o.GainHigh == nil {
		return present.Figure(*o.Gain), present.Figure(*o.GainLow), present.Figure(math.Inf(1))
	}
	return present.Figure(*o.Gain), present.Figure(*o.GainLow), present.Figure(*o.GainHigh)
}

func readTimeline(file string) (entries []report.Entry, err error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	decoder := json.NewDecoder(bytes.NewReader(data))
	for {
		var e report.Entry
		if err := decoder.Decode(&e); errors.Is(err, io.EOF) {
			return entries, nil
		} else if err != nil {
			return nil, err
		}
		entries = append(entries, e)
	}
}
