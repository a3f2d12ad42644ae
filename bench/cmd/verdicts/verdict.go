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
	"time"

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
	// all the time that it ran with and without; NaN where it ran in one of both only.
	True present.Figure `json:"true_gain"`
	// With and Without are how long that was, in seconds.
	With    float64 `json:"seconds_with"`
	Without float64 `json:"seconds_without"`
}

// verdicts returns what a run's report says of each change that was tried, beside what the
// program's counter says: progress, by the times of the timeline.
func verdicts(run int, r report.Report, timeline []report.Entry, progress []measure.Reading) (all []verdict) {
	for i, c := range r.Changes {
		first := !slices.ContainsFunc(r.Changes[:i], func(o report.Change) bool { return o.Tunlet == c.Tunlet && o.Proposal == c.Proposal })
		if !first || c.AppliedAt == nil {
			continue
		}
		on, off := count(sides(timeline, c.Tunlet, c.Proposal), progress)
		v := verdict{
			Run: run, Tunlet: c.Tunlet, Verdict: c.Verdict, Reason: c.Reason,
			True: present.Figure(on.rate() / off.rate()), With: on.seconds, Without: off.seconds,
		}
		v.Gain, v.Low, v.High = stated(c.Objective)
		all = append(all, v)
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

// side is a stretch of time in which a change was in force, or was not.
type side struct {
	on       bool
	from, to time.Time
}

// sides returns when a proposal was in force in a session, and when it was not, as far as no
// other one was being tried.
func sides(timeline []report.Entry, tunlet, proposal string) (all []side) {
	var now *side
	end := func(at time.Time) {
		if now != nil {
			all, now = append(all, side{now.on, now.from, at}), nil
		}
	}
	begin := func(on bool, at time.Time) { now = &side{on: on, from: at} }
	begun, over := false, false
	for _, e := range timeline {
		own := e.Tunlet == tunlet && e.Proposal == proposal
		switch {
		case e.Kind == "session_started":
			begin(false, e.Time)
		case over:
		case !own && e.Kind == "applying", e.Kind == "session_ended":
			end(e.Time)
			over = begun
		case !own && !begun && (e.Kind == "undone" || e.Kind == "kept"):
			if e.Kind == "kept" { // what was before is no comparison any more
				all = nil
			}
			begin(false, e.Time)
		case !own:
		case e.Kind == "applying", e.Kind == "undoing":
			end(e.Time)
			begun = true
		case e.Kind == "applied":
			begin(true, e.Time)
		case e.Kind == "turning":
			end(e.Time)
		case e.Kind == "turned", e.Kind == "kept" && now == nil:
			begin(inForce(e), e.Time)
		case e.Kind == "undone":
			begin(false, e.Time)
		}
	}
	return all
}

// inForce says whether what an entry is about was in force when it was written.
func inForce(e report.Entry) bool {
	return !slices.ContainsFunc(e.Changes, func(c report.EntryChange) bool { return c.Outcome != "applied" })
}

// progressed is how far the program got in some time.
type progressed struct{ seconds, count float64 }

func (p progressed) rate() float64 { return p.count / p.seconds }

// count adds up how far the program got while the change was in force, and while it was not.
func count(sides []side, progress []measure.Reading) (on, off progressed) {
	for _, s := range sides {
		within := slices.DeleteFunc(slices.Clone(progress), func(r measure.Reading) bool { return r.At.Before(s.from) || r.At.After(s.to) })
		if len(within) < 2 {
			continue
		}
		first, last := within[0], within[len(within)-1]
		sum := &off
		if s.on {
			sum = &on
		}
		sum.seconds += last.At.Sub(first.At).Seconds()
		sum.count += last.Count - first.Count
	}
	return on, off
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
