// SPDX-License-Identifier: Apache-2.0

package connections

import "github.com/attune-hpc/attune/tunlets/sdk"

// Problem is what a tunlet knows of one trouble that connections have. Its
// functions keep no state.
type Problem struct {
	// Name, Version and Summary of the tunlet.
	Name, Version, Summary string
	// Knobs are all that Judge may name.
	Knobs []sdk.Knob
	// Wake says when a process may have the trouble. The first level of each
	// condition decides for which processes samples are wanted.
	Wake []sdk.Wake
	// Mark says whether a reading of a connection looks as the problem does; nil:
	// Judge needs no marks. The reading has TCP.
	Mark func(d *sdk.SocketDetail) bool
	// Judge says what cures a connection; false: it does not suffer.
	Judge func(l Load, f *Flow) (Cure, bool)
	// Confidence that a cure helps, 0 to 1.
	Confidence float64
}

// Load is what the process did while the connection was observed.
type Load struct {
	// CPU is CPU seconds per second, all threads, and Wait the same of waiting for
	// one.
	CPU, Wait float64
	// Exchanges is segments with data that came per second, over all of its
	// connections.
	Exchanges float64
}

// Cure is what helps one connection.
type Cure struct {
	// Knob of the connection's socket, and the Value that it gets.
	Knob  string
	Value sdk.Value
	// Gain is how many times faster the connection gets; at least 1.
	Gain float64
	// Reason for people: a phrase about the connection, with its figures.
	Reason string
}
