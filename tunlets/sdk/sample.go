// SPDX-License-Identifier: Apache-2.0

package sdk

import (
	"time"

	"github.com/attune-hpc/attune/proto/attune/series"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// Sample is all signals of one process at one time. It is a plain value: copy
// it freely.
type Sample struct {
	// Process that was sampled.
	Process Handle
	// At is when.
	At time.Time
	// Details are those that the tunlet asked for, as far as they were read in
	// this round; see [Host.WantDetails]. Copies of the sample share them.
	Details Details

	values  [series.SignalSize]float64
	present signalSet
}

// signalSet is a set of signals, a bit each.
type signalSet [(series.SignalSize + 63) / 64]uint64

func (s *signalSet) add(sig Signal) { s[sig/64] |= 1 << (sig % 64) }
func (s *signalSet) has(sig Signal) bool {
	return sig < series.SignalSize && s[sig/64]&(1<<(sig%64)) != 0
}

// Value returns a signal's value, and whether it was read at all.
func (s *Sample) Value(sig Signal) (float64, bool) {
	if !s.present.has(sig) {
		return 0, false
	}
	return s.values[sig], true
}

// With returns a copy of the sample that has the signal set to the value.
// Tests build samples with it.
func (s Sample) With(sig Signal, value float64) Sample {
	if sig < series.SignalSize {
		s.values[sig] = value
		s.present.add(sig)
	}
	return s
}

// Samples are the samples of one round, at most one per process.
type Samples struct {
	// At is when the round was made.
	At time.Time
	// Items are the samples; owned by the tunlet.
	Items []Sample
}

func samplesFrom(b *attunev1.SampleBatch) Samples {
	out := Samples{At: time.Unix(0, b.GetUnixNano())}
	out.Items = make([]Sample, 0, len(b.GetSamples()))
	for _, s := range b.GetSamples() {
		sample := Sample{Process: Handle(s.GetProcess()), At: out.At, Details: series.DetailsFrom(s.GetTables())}
		for sig, value := range series.SignalsOf(s) {
			sample = sample.With(sig, float64(value)) // one of a newer controller is dropped
		}
		out.Items = append(out.Items, sample)
	}
	return out
}
