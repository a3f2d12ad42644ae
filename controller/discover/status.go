// SPDX-License-Identifier: Apache-2.0

package discover

import (
	"log/slog"
	"sync"
)

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

// statusBoard is what is told of the search. Its methods may be called from any
// goroutine.
type statusBoard struct {
	mu            sync.Mutex // guards what follows
	found         uint64
	missed        uint64
	registrations int
	unusable      map[string]string // registration to why
}

// countMissed counts a process that had ended before it could be looked at.
func (b *statusBoard) countMissed() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.missed++
}

// countFound counts a process that was given and taken.
func (b *statusBoard) countFound() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.found++
}

// setRegistrations notes that whoever runs was looked at, for so many registrations.
func (b *statusBoard) setRegistrations(registrations int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.registrations = registrations
}

// setUnusable takes the registrations that mean nobody, and logs what is new among them.
func (b *statusBoard) setUnusable(unusable map[string]string, log *slog.Logger) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for id, reason := range unusable {
		if b.unusable[id] != reason {
			log.Warn("registration means nobody on this node", "registration", id, "reason", reason)
		}
	}
	b.unusable = unusable
}

// addTo adds what is known here to a status. Whoever comes is found only while a stream
// runs.
func (b *statusBoard) addTo(status *Status, running bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	status.Found, status.Missed = b.found, b.missed
	if running {
		status.Registrations = b.registrations
	}
}
