// SPDX-License-Identifier: Apache-2.0

package discover

import "maps"

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
	// Unusable are registrations that mean nobody on this node, by id, with the
	// reason.
	Unusable map[string]string
}

// Status returns how things are.
func (w *Watcher) Status() Status {
	status := Status{Lost: w.hub.lost()}
	w.hub.mu.Lock()
	status.Mode, status.Reason = w.hub.mode, w.hub.reason
	running := w.hub.stream != nil
	w.hub.mu.Unlock()
	b := &w.state.status
	b.mu.Lock()
	defer b.mu.Unlock()
	status.Found, status.Missed, status.Unusable = b.found, b.missed, maps.Clone(b.unusable)
	if running {
		status.Registrations = b.registrations
	}
	return status
}
