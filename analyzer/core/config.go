// SPDX-License-Identifier: Apache-2.0

package core

import (
	"fmt"
	"slices"
	"time"

	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
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

var modes = []string{"observe", "advise", "tune"}

// ParseMode returns the mode of that name.
func ParseMode(name string) (Mode, error) {
	m := slices.Index(modes, name)
	if m < 0 {
		return 0, fmt.Errorf("unknown mode %q: use observe, advise or tune", name)
	}
	return Mode(m), nil
}

// String returns the mode's name on the command line.
func (m Mode) String() string { return modes[m] }

// Config says how a session's core decides.
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
	// Objective is the owner's: every trial is judged by it, and by nothing else; its
	// values come as Measured. nil: each tunlet's own judges its changes.
	Objective *attunev1.Objective

	queueWait time.Duration // 0: the constant; tests give another
}

// The rules that nobody has had to change.
const (
	// defaultMinGain is the least gain worth keeping, as a ratio (0.05 = 5 %), for
	// tunlets that give none of their own.
	defaultMinGain = 0.05
	// defaultMaxTries bounds the tries per tunlet, scope and process that did not end in
	// a kept change, for tunlets that give no number of their own.
	defaultMaxTries = 3
	// queueWait bounds the wait for other experiments.
	queueWait = 90 * time.Second
	// applyTimeout is added to the time that a proposal's changes may wait for
	// their safe points; after it a request without an answer has failed.
	applyTimeout = time.Second
	// evaluateTimeout bounds the wait for a tunlet's verdict.
	evaluateTimeout = time.Second
	// cooldown is how long a knob of a process rests after an undo or a failure.
	cooldown = 10 * time.Second
)
