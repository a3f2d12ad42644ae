// SPDX-License-Identifier: Apache-2.0

package sdk

import (
	"time"

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

	values  [signalCount]float64
	present uint32
}

// Value returns a signal's value, and whether it was read at all.
func (s *Sample) Value(sig Signal) (float64, bool) {
	if sig >= signalCount || s.present&(1<<sig) == 0 {
		return 0, false
	}
	return s.values[sig], true
}

// With returns a copy of the sample that has the signal set to the value.
// Tests build samples with it.
func (s Sample) With(sig Signal, value float64) Sample {
	if sig < signalCount {
		s.values[sig] = value
		s.present |= 1 << sig
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
		sample := Sample{Process: Handle(s.GetProcess()), At: out.At, Details: detailsFrom(s.GetDetails())}
		for _, r := range s.GetReadings() {
			if sig := r.GetSignal(); sig > 0 && sig < signalCount {
				sample.values[sig] = r.GetValue()
				sample.present |= 1 << sig
			}
		}
		out.Items = append(out.Items, sample)
	}
	return out
}
