// SPDX-License-Identifier: Apache-2.0

package track

import (
	"errors"
	"log/slog"

	"github.com/attune-hpc/attune/internal/procid"
)

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

// unfollow says whether the source would have told of the end, and will not.
func (f *feed) unfollow(pid int) (was bool) {
	if !f.on {
		return false
	}
	was, err := f.source.Remove(pid)
	if err != nil {
		f.log.Warn("source goes on following", "pid", pid, "error", err)
	}
	return was
}

// tooLate says whether a process that the source was just asked to follow had passed the
// point where its end is told. What it took belongs to the one that it came of.
func (f *feed) tooLate(pid int) bool {
	stat, err := procid.ReadStat(pid)
	over := errors.Is(err, procid.ErrGone) || err == nil && stat.Exiting && stat.Threads <= 1
	return over && f.unfollow(pid)
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
