// SPDX-License-Identifier: Apache-2.0

// Package samplefilter withholds samples that a tunlet has said it does not
// want. The Analyzer and the test harness share it, so that a tunlet is tested
// with what it will get.
package samplefilter

import (
	"slices"
	"time"

	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// Filter knows one tunlet's interests. The zero value lets everything pass. Not
// safe for use by several goroutines.
type Filter struct {
	waits map[uint64]*wait // by process; absent: all its samples pass
}

// wait is for one of some levels to be reached.
type wait struct {
	levels []*attunev1.Level
	last   *attunev1.Sample // nil: none yet
	at     int64            // when it was taken, Unix time in nanoseconds
}

// Set takes over an interest. Whoever does so for a process calls Forget at its
// end.
func (f *Filter) Set(i *attunev1.SampleInterest) {
	if i.GetAll() {
		f.Forget(i.GetProcess())
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
	w.levels = i.GetLevels()
}

// Forget forgets a process.
func (f *Filter) Forget(process uint64) { delete(f.waits, process) }

// Pass returns what the tunlet gets of a round: nothing, or the round's samples
// that it wants, after the samples of earlier rounds that it needs to make
// sense of the first ones. The samples are shared with the argument.
func (f *Filter) Pass(round *attunev1.SampleBatch) []*attunev1.SampleBatch {
	if len(f.waits) == 0 {
		return []*attunev1.SampleBatch{round}
	}
	var out []*attunev1.SampleBatch
	var now []*attunev1.Sample
	for _, sample := range round.GetSamples() {
		w := f.waits[sample.GetProcess()]
		switch {
		case w == nil:
			now = append(now, sample)
		case w.reached(sample, round.GetUnixNano()):
			if w.last != nil {
				out = earlier(out, w)
			}
			now = append(now, sample)
			f.Forget(sample.GetProcess())
		default:
			w.last, w.at = sample, round.GetUnixNano()
		}
	}
	if len(now) > 0 {
		out = append(out, &attunev1.SampleBatch{UnixNano: round.GetUnixNano(), Samples: now})
	}
	return out
}

// earlier adds the last sample of a wait to the batches, one for each time.
func earlier(batches []*attunev1.SampleBatch, w *wait) []*attunev1.SampleBatch {
	i, found := slices.BinarySearchFunc(batches, w.at, func(b *attunev1.SampleBatch, at int64) int {
		return int(min(1, max(-1, b.GetUnixNano()-at)))
	})
	if !found {
		batches = slices.Insert(batches, i, &attunev1.SampleBatch{UnixNano: w.at})
	}
	batches[i].Samples = append(batches[i].Samples, w.last)
	return batches
}

// reached reports whether a sample reaches one of the levels.
func (w *wait) reached(sample *attunev1.Sample, at int64) bool {
	for _, l := range w.levels {
		value, ok := valueOf(sample, l.GetSignal())
		if ok && !gauge(l.GetSignal()) {
			var before float64
			before, ok = valueOf(w.last, l.GetSignal())
			seconds := time.Duration(at - w.at).Seconds()
			value, ok = (value-before)/seconds, ok && seconds > 0
		}
		if ok && value >= l.GetAtLeast() {
			return true
		}
	}
	return false
}

func valueOf(s *attunev1.Sample, signal attunev1.Signal) (float64, bool) {
	for _, r := range s.GetReadings() {
		if r.GetSignal() == signal {
			return r.GetValue(), true
		}
	}
	return 0, false
}

// gauge reports whether a signal is a value and not a counter.
func gauge(s attunev1.Signal) bool {
	switch s {
	case attunev1.Signal_SIGNAL_RESIDENT_BYTES, attunev1.Signal_SIGNAL_THREADS,
		attunev1.Signal_SIGNAL_RUNNABLE_THREADS, attunev1.Signal_SIGNAL_CPUS_ALLOWED:
		return true
	}
	return false
}
