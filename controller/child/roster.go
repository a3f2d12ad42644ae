// SPDX-License-Identifier: Apache-2.0

package child

import (
	"sync"

	"github.com/attune-hpc/attune/controller/track"
	"github.com/attune-hpc/attune/internal/procid"
)

// roster is which processes are a session's, by what attuned itself knows: those it
// has handed over, and what the kernel says of them. Its methods may be called from any
// goroutine.
type roster struct {
	mu    sync.Mutex     // guards what follows; a leaf lock
	start map[int]uint64 // clock ticks since boot, 0 if unknown, by pid
}

func newRoster() *roster { return &roster{start: make(map[int]uint64)} }

// enter notes a process.
func (r *roster) enter(pid int, start uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.start[pid] = start
}

// leave forgets one.
func (r *roster) leave(pid int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.start, pid)
}

// has says whether a process is the session's.
func (r *roster) has(process procid.Identity) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	start, ok := r.start[process.PID]
	return ok && sameProcess(process, process.PID, start)
}

// hasPID says whether the process that has a pid now is the session's.
func (r *roster) hasPID(pid int) bool {
	r.mu.Lock()
	start, ok := r.start[pid]
	r.mu.Unlock()
	if !ok || start == 0 {
		return ok
	}
	stat, err := procid.ReadStat(pid)
	return err == nil && stat.StartTicks == start
}

// note takes an event in the life of the session's processes.
func (r *roster) note(e track.Event) {
	switch {
	case e.Kind == track.Fork:
		r.enter(e.PID, e.StartTicks)
	case e.Kind == track.Exit && e.Last:
		r.leave(e.PID)
	}
}
