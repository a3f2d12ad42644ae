// SPDX-License-Identifier: Apache-2.0

package track

import "log/slog"

// feed is the source of a tracker for as long as it tells what happens, and nothing
// before and after that.
type feed struct {
	source Source
	on     bool   // the source still tells
	lost   uint64 // events, as logged
	log    *slog.Logger
}

// follow asks for the events of a process.
func (f *feed) follow(pid int) {
	if !f.on {
		return
	}
	if err := f.source.Add(pid); err != nil {
		f.log.Warn("source does not follow", "pid", pid, "error", err)
	}
}

func (f *feed) unfollow(pid int) {
	if !f.on {
		return
	}
	if err := f.source.Remove(pid); err != nil {
		f.log.Warn("source goes on following", "pid", pid, "error", err)
	}
}

// logLost logs how many events were lost since the last time.
func (f *feed) logLost() {
	if !f.on {
		return
	}
	if lost := f.source.Lost(); lost != f.lost {
		f.log.Warn("process events lost; short-lived processes may be missing", "lost", lost-f.lost)
		f.lost = lost
	}
}
