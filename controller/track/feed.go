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
	source  Source
	on      bool         // the source still tells
	refused map[int]bool // processes that the source does not follow; scans ask for these again
	full    bool         // it has refused one in this scan: the others would be asked for in vain
	lost    uint64       // events, as logged
	log     *slog.Logger
}

func newFeed(source Source, log *slog.Logger) *feed {
	return &feed{source: source, on: source != nil, refused: make(map[int]bool), log: log}
}

// tells says whether what a process does is told.
func (f *feed) tells(pid int) bool { return f.on && !f.refused[pid] }

// follow asks for the events of a process. It returns false if it is at its end, of which
// nobody will tell: what it took belongs to the process that it came of.
func (f *feed) follow(pid int) bool {
	if !f.on {
		return true
	}
	err := f.source.Add(pid)
	switch {
	case errors.Is(err, procid.ErrGone):
		return false
	case err == nil:
		delete(f.refused, pid)
		return true
	}
	f.full = true
	if !f.refused[pid] {
		f.refused[pid] = true
		f.log.Warn("source does not follow; the process is looked at now and then", "pid", pid, "error", err)
	}
	return true
}

func (f *feed) unfollow(pid int) {
	delete(f.refused, pid)
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
