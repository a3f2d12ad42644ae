// SPDX-License-Identifier: Apache-2.0

package core

import (
	"time"

	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// Event is something that happened, told to [Core.Step].
type Event interface{ event() }

// TunletReady tells that a tunlet can be talked to. It comes again after a
// restart.
type TunletReady struct {
	// Info is the tunlet's account of itself.
	Info *attunev1.DescribeResponse
}

// TunletGone tells that a tunlet's process has ended or was killed.
type TunletGone struct {
	// Tunlet is its name.
	Tunlet string
	// Reason says why, for people.
	Reason string
}

// ProcessStarted tells of a process that came under control.
type ProcessStarted struct {
	// Process is its handle.
	Process uint64
	// Executable is its path.
	Executable string
	// Program is the same for processes that are expected to do the same kind of
	// work; empty: it is not known to be like any other.
	Program string
}

// ProcessEnded tells that a process is gone or out of reach.
type ProcessEnded struct {
	// Process is its handle.
	Process uint64
}

// Propose is a tunlet's proposal.
type Propose struct {
	// Tunlet is its name.
	Tunlet string
	// Proposal is what it proposes; the core takes it over.
	Proposal *attunev1.Proposal
}

// Withdraw is a tunlet's wish to take a proposal back.
type Withdraw struct {
	// Tunlet is its name.
	Tunlet string
	// Proposal is the proposal's id.
	Proposal string
	// Processes are those whose changes are to be undone; none: all.
	Processes []uint64
	// Reason says why, for people.
	Reason string
}

// Sample is one value of a tunlet's objective. One that [attunev1.CheckObjective] objects to
// is dropped.
type Sample struct {
	// Tunlet is its name.
	Tunlet string
	// Scope is what the value is about.
	Scope string
	// Value is in the objective's unit.
	Value float64
	// At is the end of the interval that the value covers.
	At time.Duration
}

// Measured is one value of the owner's objective, see Config.Objective; dropped as a Sample is.
type Measured struct {
	// Value is in the objective's unit.
	Value float64
	// At is the end of the interval that the value covers.
	At time.Duration
}

// Result is what became of one change.
type Result struct {
	// Result is the controller's answer; the core takes it over.
	Result *attunev1.ActionResult
	// At is the answer's applied_unix_nano as a session time; 0: unknown.
	At time.Duration
}

// RequestDone tells that all controllers have answered a request.
type RequestDone struct {
	// Request is the id that the core gave it.
	Request string
}

// Verdict is a tunlet's answer to AskEvaluate.
type Verdict struct {
	// Tunlet is its name.
	Tunlet string
	// Proposal is the proposal's id.
	Proposal string
	// Verdict is its opinion; VERDICT_UNSPECIFIED: none.
	Verdict attunev1.Verdict
	// Reason says why, for people.
	Reason string
}

// Lapsed tells that changes are not in force any more, and that nobody undid
// them: their leases ended while their controller was out of reach, or Attune stood still.
type Lapsed struct {
	// Changes are their ids; unknown ones are ignored.
	Changes []string
	// Reason says why, for people.
	Reason string
}

// Adopt hands over a kept change of an earlier session, whose process this one
// has. It is ignored if its knob has an owner already.
type Adopt struct{ Held }

// Held is a change that is to stay in force.
type Held struct {
	// ID is the change's.
	ID string
	// Process is the handle of its process.
	Process uint64
	// Knob is what it changes.
	Knob string
	// Tunlet is whose it is.
	Tunlet string
	// Action is what it does, see attunev1.ActionText.
	Action string
	// Kept says that its gain was proven; else that is still to be seen.
	Kept bool
	// Gain is its measured gain, as a ratio; 0: unknown.
	Gain float64
}

// Tick makes time pass.
type Tick struct{}

// Finish ends the session: what was changed in processes that still run is
// undone, but for what Config.Keep leaves.
type Finish struct {
	// Keep has it leave what was judged good, whatever Config.Keep says.
	Keep bool
}

func (TunletReady) event()    {}
func (TunletGone) event()     {}
func (ProcessStarted) event() {}
func (ProcessEnded) event()   {}
func (Propose) event()        {}
func (Withdraw) event()       {}
func (Sample) event()         {}
func (Measured) event()       {}
func (Result) event()         {}
func (RequestDone) event()    {}
func (Verdict) event()        {}
func (Lapsed) event()         {}
func (Adopt) event()          {}
func (Tick) event()           {}
func (Finish) event()         {}
