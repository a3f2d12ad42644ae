// SPDX-License-Identifier: Apache-2.0

// Package samplefilter withholds samples and details that a tunlet has said it
// does not want, or has not asked for. The Analyzer and the test harness share
// it, so that a tunlet is tested with what it will get.
package samplefilter

import (
	"cmp"
	"slices"
	"time"

	"github.com/attune-hpc/attune/proto/attune/series"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// Filter knows one tunlet's interests. The zero value lets all samples pass,
// without details. Not safe for use by several goroutines.
type Filter struct {
	waits   map[uint64]*wait // by process; absent: all its samples pass
	details map[uint64]kinds // by process; absent: none
}

// wait is for one of some levels to be reached, or for some time to pass.
type wait struct {
	levels []*attunev1.Level
	after  int64            // nanoseconds; 0: for levels only
	since  int64            // the first round of the wait, Unix time in nanoseconds; 0: none yet
	last   *attunev1.Sample // nil: none yet
	at     int64            // when it was taken, Unix time in nanoseconds
	told   bool             // it passed, because of its details
}

// Set takes over an interest. Whoever does so for a process calls Forget at its
// end.
func (f *Filter) Set(i *attunev1.SampleInterest) {
	if i.GetAll() {
		delete(f.waits, i.GetProcess())
		return
	}
	if f.waits == nil {
		f.waits = make(map[uint64]*wait)
	}
	w := f.waits[i.GetProcess()]
	if w == nil {
		w = &wait{}
		f.waits[i.GetProcess()] = w
	}
	w.levels, w.after, w.since = i.GetLevels(), i.GetAfterNanos(), 0
}

// Forget forgets a process.
func (f *Filter) Forget(process uint64) {
	delete(f.waits, process)
	delete(f.details, process)
}

// Pass returns what the tunlet gets of a round: nothing, or the round's samples
// that it wants, after the samples of earlier rounds that it needs to make
// sense of the first ones. The samples are shared with the argument.
func (f *Filter) Pass(round *attunev1.SampleBatch) []*attunev1.SampleBatch {
	if len(f.waits) == 0 && !slices.ContainsFunc(round.GetSamples(), detailed) {
		return []*attunev1.SampleBatch{round}
	}
	var out []*attunev1.SampleBatch
	var now []*attunev1.Sample
	for _, sample := range round.GetSamples() {
		process := sample.GetProcess()
		w, wanted := f.waits[process], f.details[process]
		sample = wanted.of(sample)
		switch {
		case w == nil:
			now = append(now, sample)
		case w.passed(round.GetUnixNano()), w.reached(sample, round.GetUnixNano()):
			if w.last != nil && !w.told {
				out = earlier(out, w.last, w.at)
			}
			now = append(now, sample)
			delete(f.waits, process)
		case len(wanted) > 0:
			now = append(now, sample)
			w.last, w.at, w.told = sample, round.GetUnixNano(), true
		default:
			w.last, w.at, w.told = sample, round.GetUnixNano(), false
		}
	}
	if len(now) > 0 {
		out = append(out, &attunev1.SampleBatch{UnixNano: round.GetUnixNano(), Samples: now})
	}
	return out
}

// earlier adds a sample of an earlier time to batches, one for each time.
func earlier(batches []*attunev1.SampleBatch, sample *attunev1.Sample, at int64) []*attunev1.SampleBatch {
	i, found := slices.BinarySearchFunc(batches, at, func(b *attunev1.SampleBatch, at int64) int {
		return cmp.Compare(b.GetUnixNano(), at)
	})
	if !found {
		batches = slices.Insert(batches, i, &attunev1.SampleBatch{UnixNano: at})
	}
	batches[i].Samples = append(batches[i].Samples, sample)
	return batches
}

// passed reports whether the time of the wait is over. It is that of rounds, which say the
// same in a replay.
func (w *wait) passed(at int64) bool {
	if w.since == 0 {
		w.since = at
	}
	return w.after > 0 && at-w.since >= w.after
}

// reached reports whether a sample reaches one of the levels.
func (w *wait) reached(sample *attunev1.Sample, at int64) bool {
	return slices.ContainsFunc(w.levels, func(l *attunev1.Level) bool {
		return reaches(l, w.last, w.at, sample, at)
	})
}

// reaches reports whether a sample reaches a level, given the one before it;
// nil: there is none. Times are Unix times in nanoseconds.
func reaches(l *attunev1.Level, before *attunev1.Sample, then int64, sample *attunev1.Sample, at int64) bool {
	signal, of := series.ID(l.GetSeries()), series.ID(l.GetOf())
	seconds := time.Duration(at - then).Seconds()
	rises := !signal.Gauge()
	value, ok := measured(signal, rises, before, sample, seconds)
	if of == 0 {
		return ok && value >= l.GetAtLeast()
	}
	// A tunlet must not sleep for what nobody can see.
	if _, known := series.Signal(sample, signal); !known {
		return true
	}
	if _, known := series.Signal(sample, of); !known {
		return ok && value > 0
	}
	whole, known := measured(of, rises, before, sample, seconds)
	return ok && known && value >= l.GetAtLeast()*max(0, whole)
}

// measured returns the value of a signal in a sample, or by how much it rises per
// second, the seconds after another one; false if that is not known.
func measured(signal series.ID, rises bool, before, sample *attunev1.Sample, seconds float64) (float64, bool) {
	value, ok := series.Signal(sample, signal)
	if !rises {
		return value, ok
	}
	start, known := series.Signal(before, signal)
	return (value - start) / seconds, ok && known && seconds > 0
}
