// SPDX-License-Identifier: Apache-2.0

package sdk

import (
	"time"

	"github.com/attune-hpc/attune/proto/attune/series"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// Signal is one thing sampled from outside a process. Those that are not
// gauges count up over the life of the process; a Window turns them into
// rates. docs/reference/signals.md lists them with their sources.
//
// String returns its name, e.g. "run_time", and Gauge whether it is a value of the
// moment, and no counter.
type Signal = series.ID

// SignalNamed returns the signal of a name, and whether there is one.
func SignalNamed(name string) (Signal, bool) { return series.Named(name) }

// Signals lists all signals.
func Signals() (all []Signal) {
	for _, s := range series.Signals().Series {
		all = append(all, s.ID)
	}
	return all
}

// Detail is a kind of details: a table of what is read from outside a process only
// when a tunlet asks for it by [Host.WantDetails]. String returns its name: threads,
// sockets and so on. docs/reference/signals.md has the fields of each.
type Detail = series.TableID

// Details are what a round read of a process beside its signals. A kind is nil
// in rounds in which it was not read: a bounded number of threads and
// descriptors is read in each one, of all processes in turn.
type Details = series.Details

// ThreadKey names a thread of a process for good.
type ThreadKey struct {
	TID        int
	StartTicks uint64
}

// KeyOf returns the thread's name for good.
func KeyOf(t *ThreadDetail) ThreadKey { return ThreadKey{t.TID, t.StartTicks} }

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
