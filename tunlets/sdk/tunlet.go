// SPDX-License-Identifier: Apache-2.0

package sdk

import "time"

// Tunlet is what every tunlet is. All the interfaces below are optional; one
// that a tunlet does not implement means "not interested".
//
// For each session (one execution of an application) the SDK makes a tunlet
// anew, so a tunlet never has to clear what it remembers.
type Tunlet interface {
	// Describe says what the tunlet is. It is called first, and must answer
	// the same each time.
	Describe() Description
}

// Configurer takes the tunlet's section of the configuration.
type Configurer interface {
	// Configure is called once, after Describe and before anything else. An
	// error says what is wrong with the options; the tunlet is not used then.
	Configure(options map[string]string) error
}

// ApplicationStartObserver hears of the session's start.
type ApplicationStartObserver interface {
	ApplicationStarted(h *Host, app Application)
}

// ApplicationEndObserver hears of the session's end; nothing can be wanted
// any more.
type ApplicationEndObserver interface {
	ApplicationEnded(at time.Time)
}

// ProcessStartObserver hears of processes under control. The same handle comes
// again, with Update set, when more is known about it: objects loaded,
// mechanisms opened, CPUs allowed.
type ProcessStartObserver interface {
	ProcessStarted(h *Host, p Process)
}

// ProcessEndObserver hears of processes that ended or replaced their image.
type ProcessEndObserver interface {
	ProcessEnded(h *Host, end ProcessEnd)
}

// SampleHandler takes the signals that are read from outside the processes.
type SampleHandler interface {
	HandleSamples(h *Host, s Samples)
}

// AggregateHandler takes the sums of measure points with aggregate delivery.
type AggregateHandler interface {
	HandleAggregates(h *Host, a Aggregates)
}

// RecordHandler takes the records of measure points with event or sampled
// delivery. The records are valid during the call only.
type RecordHandler interface {
	HandleRecords(h *Host, r Records)
}

// PointObserver hears what became of the measure points that it asked for, in each process
// as often as that changes: a point is placed or refused first, may then be off and placed
// in turn, or refused after all, and is removed at last. Where a tunlet is none, a remark tells
// people of points that are refused.
type PointObserver interface {
	PointChanged(h *Host, c PointChange)
}

// Ticker is told the time at the session's tick period, and less often while
// nothing happens.
type Ticker interface {
	Tick(h *Host)
}

// Evaluator gives a verdict on an applied proposal. Without it the Analyzer
// judges by the objective alone; with it, what was not measured to be better
// is still undone.
type Evaluator interface {
	Evaluate(e Evaluation) (verdict Verdict, reason string)
}

// ProposalObserver hears what became of its proposals: Applying, Applied, then Lifted and
// Applied in turn as often as it takes to compare, and how it ends. What was measured
// between Lifted and Applied is of the program without the change. One that ends with its processes
// is Undone, or Refused if it was not applied yet, after their ends. A kept one is compared
// again from time to time: it is Lifted, then Kept once more. One that was Undone because it had to
// make room to another tunlet's may be tried again, Applying, Applied and so on.
//
// A tunlet that was started again in the middle of a session has forgotten what it proposed.
// It is told of each change that is in force as Kept, with what was proposed (Earlier), after
// the processes; other ids than those it should give to proposals of its own.
type ProposalObserver interface {
	ProposalChanged(h *Host, c ProposalChange)
}

// Application is what a session is about.
type Application struct {
	// SessionID names the session.
	SessionID string
	// Command is the command line as the owner gave it.
	Command []string
	// Mode is observe, advise or tune.
	Mode string
	// TickPeriod is the time between ticks, samples and aggregates; it is longer
	// while nothing happens.
	TickPeriod time.Duration
}
