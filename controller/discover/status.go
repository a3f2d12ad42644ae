// SPDX-License-Identifier: Apache-2.0

package discover

import "sync/atomic"

// Status says how processes are found.
type Status struct {
	// Mode is [ModeWatch] or [ModePoll]; "" before Run.
	Mode string
	// Reason says why not by the best way; empty if it is.
	Reason string
	// Lost is how many events were lost.
	Lost uint64
	// Missed is how many processes had ended before anything could be found out
	// about them. BPF tells at once, so there are none.
	Missed uint64
	// Registrations that are looked for: whoever runs was looked at, and whoever
	// comes will be.
	Registrations int
	// Found is how many processes were given and taken.
	Found uint64
}

// statusBoard is what is told of the search.
type statusBoard struct {
	found         atomic.Uint64 // processes that were given and taken
	missed        atomic.Uint64 // processes that had ended before they could be looked at
	registrations atomic.Int64  // for which whoever runs was looked at
}

// addTo adds what is known here to a status. Whoever comes is found only while a stream
// runs.
func (b *statusBoard) addTo(status *Status, running bool) {
	// First, so that with registrations go those that were found for them.
	if running {
		status.Registrations = int(b.registrations.Load())
	}
	status.Found, status.Missed = b.found.Load(), b.missed.Load()
}
