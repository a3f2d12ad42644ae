// SPDX-License-Identifier: Apache-2.0

package sdk

import (
	"time"

	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// Interest says which samples of a process a tunlet wants. Every batch of
// samples wakes the tunlet's process, and that takes CPU time from the
// application: a tunlet that has nothing to do in a process says so.
type Interest struct {
	all    bool
	levels []Level
	after  time.Duration
}

// Level is a condition on one signal: its rise per second between two samples
// (a gauge's value) is at least AtLeast.
type Level struct {
	// Signal it is about.
	Signal Signal
	// AtLeast is in the signal's unit, per second unless it is a gauge. With Of, it is
	// how many times what Of has.
	AtLeast float64
	// Of is another signal, of whose rise (of a gauge, of whose value) the first is a
	// part; beside a counter the rise of a gauge counts, too, and one that falls has
	// none. What is a part of the time that a process runs is no matter of how much it
	// gets to run. Where one of the two cannot be read, the level is reached. Zero:
	// AtLeast stands for itself.
	Of Signal
}

// AllSamples is what a tunlet gets without asking.
func AllSamples() Interest { return Interest{all: true} }

// NoSamples is for a process in which the tunlet has nothing to do.
func NoSamples() Interest { return Interest{} }

// SamplesFrom means none until one of the levels is reached: then the sample
// that reaches it, with the one before it, and all that follow.
func SamplesFrom(levels ...Level) Interest { return Interest{levels: levels} }

// OrAfter is the same interest, but in all samples when so much time has passed: the first
// one then, with the one before it, and all that follow.
func (i Interest) OrAfter(pause time.Duration) Interest {
	i.after = pause
	return i
}

// Want says which samples of a process are to be delivered from now on.
func (h *Host) Want(process Handle, i Interest) {
	h.reaction.Interests = append(h.reaction.Interests, &attunev1.SampleInterest{
		Process: uint64(process), All: i.all, Levels: levelsProto(i.levels), AfterNanos: int64(i.after),
	})
}

// PassOver leaves a process alone that is beyond the bound of those that a tunlet follows at one
// time: no samples of it are wanted, and people are told of the bound once.
func (h *Host) PassOver(process Handle, bound int) {
	h.Want(process, NoSamples())
	h.remarkOnce(0, "more than %d processes at one time: those that came later are not watched", bound)
}

// WantDetails says which details of a process are to be read from now on, in
// place of what was asked for before; no kind: none. Details come with samples:
// as long as some are wanted of a process, all of its samples are delivered. They
// cost more than signals do (docs/reference/signals.md): ask when the signals
// give reason to, and give them back.
func (h *Host) WantDetails(process Handle, kinds ...Detail) {
	out := &attunev1.TableWant{Process: uint64(process)}
	for _, k := range kinds {
		out.Tables = append(out.Tables, uint32(k))
	}
	h.reaction.Wants = append(h.reaction.Wants, out)
}
