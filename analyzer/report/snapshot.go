// SPDX-License-Identifier: Apache-2.0

package report

// Snapshot is a session as it stands, for a live view. It is plain data that
// shares nothing with the session.
type Snapshot struct {
	// Seconds is the time since the session's start.
	Seconds float64
	// Mode is observe, advise or tune.
	Mode string
	// Processes is how many run.
	Processes int
	// Tunlets are all tunlets of the session.
	Tunlets []TunletState
	// Points are the active measure points, one entry per point.
	Points []PointRate
	// Objectives are the latest objective values, one entry per tunlet and
	// scope, at most 64.
	Objectives []ObjectiveValue
	// Proposals are those on their way and the latest finished ones, oldest
	// first, at most 64.
	Proposals []ProposalState
	// Events counts what came and what was lost.
	Events Events
}

// TunletState is one tunlet.
type TunletState struct {
	// Name is its name.
	Name string
	// State is as in [Tunlet].
	State string
	// Reason says why.
	Reason string
}

// PointRate is one measure point.
type PointRate struct {
	// Tunlet asked for it.
	Tunlet string
	// Target is what is watched.
	Target string
	// Mechanism serves it; the one of the process that answered last.
	Mechanism string
	// PerSecond is the rate of hits over all processes, in the last interval
	// of about a second.
	PerSecond float64
}

// ObjectiveValue is the latest value of an objective.
type ObjectiveValue struct {
	// Tunlet judges by it.
	Tunlet string
	// Name and Unit are the objective's.
	Name, Unit string
	// Scope is what it is about.
	Scope string
	// Value is the latest value.
	Value float64
}

// ProposalState is one proposal.
type ProposalState struct {
	// Tunlet proposed it.
	Tunlet string
	// State is a word: waiting, applying, judging, kept, undoing, undone,
	// failed, refused, advised, ended.
	State string
	// Knobs are the names of what it changes, each once.
	Knobs []string
	// Processes is how many processes it changes.
	Processes int
	// Gain is the measured gain; 0: not measured.
	Gain float64
	// Reason is why it is in this state.
	Reason string
}
