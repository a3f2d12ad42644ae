// SPDX-License-Identifier: Apache-2.0

package core

import (
	"fmt"
	"time"
)

// Mode says how far the core may go.
type Mode int

// The modes, from the most careful to the one that changes things.
const (
	// ModeObserve refuses every proposal, but records it.
	ModeObserve Mode = iota
	// ModeAdvise turns proposals into advice with a stable id.
	ModeAdvise
	// ModeTune applies, judges, keeps and undoes.
	ModeTune
)

// ParseMode returns the mode of that name.
func ParseMode(name string) (Mode, error) {
	for m := ModeObserve; m <= ModeTune; m++ {
		if m.String() == name {
			return m, nil
		}
	}
	return 0, fmt.Errorf("unknown mode %q: use observe, advise or tune", name)
}

// String returns the mode's name on the command line.
func (m Mode) String() string {
	switch m {
	case ModeObserve:
		return "observe"
	case ModeAdvise:
		return "advise"
	case ModeTune:
		return "tune"
	}
	return fmt.Sprintf("Mode(%d)", int(m))
}

// Config holds the core's rules. The zero value of every field but Mode means
// the default given with it.
type Config struct {
	// Mode says how far the core may go; the zero value is ModeObserve.
	Mode Mode
	// IDPrefix begins the ids of changes, for sessions that may have to do with
	// those of an earlier one; empty: c1, c2, ...
	IDPrefix string
	// Apart says that other Analyzers tune other parts of the same application, and
	// know nothing of this one. Turns of one would spoil the others' comparisons,
	// so there are none: a plain gain is kept, and all else undone.
	Apart bool
	// Keep leaves what was judged good in force when the session ends; what was
	// not judged yet is undone all the same.
	Keep bool
	// MinGain is the least gain worth keeping, as a ratio (0.05 = 5 %), for
	// tunlets that give none of their own; 0: 0.05.
	MinGain float64
	// MaxTries bounds the tries per tunlet and scope that did not end in a
	// kept change, for tunlets that give no number of their own; 0: 3.
	MaxTries int
	// Settle is the time after a change whose samples are dropped; 0: 100 ms.
	Settle time.Duration
	// MinSamples is the least number of samples after the change, and waited
	// for before it; 0: 6, the least for which a median has a 95 % confidence
	// interval that assumes nothing.
	MinSamples int
	// MaxSamples ends the comparison of before and after: what is not plain by
	// then is judged in turns; 0: 12.
	MaxSamples int
	// PlainGain is the least gain, as a ratio, that is kept after one comparison
	// of before and after, if it was predicted; and a loss as large is undone
	// after it. Anything less, or not foreseen, is judged in turns; 0: 3.
	PlainGain float64
	// TurnsTimeout bounds the time that a change is judged in turns; 0: 60 s.
	TurnsTimeout time.Duration
	// BaselineSamples is how many of the latest samples before the change
	// count. Few, because older ones may be of a phase without the trouble;
	// 0: 10.
	BaselineSamples int
	// BaselineWindow is how old a sample of the baseline may be; 0: 2 s.
	BaselineWindow time.Duration
	// BaselineWait bounds the wait for MinSamples; after it the change is
	// applied with a weak baseline, and marked so, or refused without any;
	// 0: 400 ms.
	BaselineWait time.Duration
	// QueueWait bounds the wait for other experiments; 0: 90 s.
	QueueWait time.Duration
	// ApplyTimeout is added to the time that a proposal's changes may wait for
	// their safe points; after it a request without an answer has failed; 0: 1 s.
	ApplyTimeout time.Duration
	// EvaluateTimeout bounds the wait for a tunlet's verdict; 0: 1 s.
	EvaluateTimeout time.Duration
	// JudgeTimeout bounds the time under judgement; 0: 10 s.
	JudgeTimeout time.Duration
	// MaxWaits bounds how often a tunlet may answer WAIT; 0: 3.
	MaxWaits int
	// Cooldown is how long a knob of a process rests after an undo or a
	// failure; 0: 10 s.
	Cooldown time.Duration
	// WatchWindow is the time over which a kept change's regression must
	// last; 0: 2 s.
	WatchWindow time.Duration
	// Grace is how long the kept changes of a dead tunlet wait for its
	// restart; 0: 10 s.
	Grace time.Duration
	// Alpha is the significance level of a comparison, of the watch over kept
	// changes and of the last look at a trial in turns; the looks before that
	// take half of it; 0: 0.01.
	Alpha float64
}

// withDefaults returns c with every zero field replaced by its default.
func (c Config) withDefaults() Config {
	if c.Apart { // one comparison must do, also of progress in bursts
		def(&c.BaselineSamples, 64)
		def(&c.BaselineWindow, 4*time.Second)
	}
	def(&c.MinGain, 0.05)
	def(&c.MaxTries, 3)
	def(&c.Settle, 100*time.Millisecond)
	def(&c.MinSamples, 6)
	def(&c.MaxSamples, 12)
	def(&c.PlainGain, 3)
	def(&c.TurnsTimeout, 60*time.Second)
	def(&c.BaselineSamples, 10)
	def(&c.BaselineWindow, 2*time.Second)
	def(&c.BaselineWait, 400*time.Millisecond)
	def(&c.QueueWait, 90*time.Second)
	def(&c.ApplyTimeout, time.Second)
	def(&c.EvaluateTimeout, time.Second)
	def(&c.JudgeTimeout, 10*time.Second)
	def(&c.MaxWaits, 3)
	def(&c.Cooldown, 10*time.Second)
	def(&c.WatchWindow, 2*time.Second)
	def(&c.Grace, 10*time.Second)
	def(&c.Alpha, 0.01)
	return c
}

// def sets *p to v if it is the zero value.
func def[T comparable](p *T, v T) {
	var zero T
	if *p == zero {
		*p = v
	}
}
