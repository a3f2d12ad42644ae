// SPDX-License-Identifier: Apache-2.0

package discover

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"

	"github.com/attune-hpc/attune/controller/bpf/procevent"
	"github.com/attune-hpc/attune/controller/track"
	"github.com/attune-hpc/attune/internal/clock"
	"github.com/attune-hpc/attune/internal/procid"
	"github.com/attune-hpc/attune/internal/queue"
)

// candidatesQueued bounds the processes that wait to be looked at; more wait in
// the stream, whose own buffer counts what does not fit.
const candidatesQueued = 1024

// hub stands between the stream of the day and all who listen: it survives
// every stream, and tells the next one whom to follow.
type hub struct {
	candidates chan event
	rescan     queue.Bell // rung when something may have been missed

	mu      sync.Mutex // guards what follows
	current current
	names   []procevent.Name
	views   map[uint32]*view
	lastID  uint32
	members map[int]member
	added   uint64 // members so far
}

func newHub() *hub {
	return &hub{
		current:    current{followed: passive{}},
		candidates: make(chan event, candidatesQueued), rescan: queue.NewBell(),
		views: make(map[uint32]*view), members: make(map[int]member),
	}
}

// use makes a stream the one that everybody listens to. What it is to follow it
// follows when use returns.
func (h *hub) use(s stream, reason string) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if err := s.want(h.names); err != nil {
		return err
	}
	for pid, m := range h.members {
		switch err := s.follow(pid, m.view); {
		case errors.Is(err, procid.ErrGone):
			delete(h.members, pid)
		case errors.Is(err, procevent.ErrShare): // its view has lost more by then
		case err != nil:
			return err
		}
	}
	h.current.use(s, reason)
	h.rescan.Ring()
	return nil
}

// leave is the end of a stream: until the next one nobody is followed.
func (h *hub) leave(s stream) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for id, v := range h.views {
		v.refused += s.refused(id)
	}
	h.current.leave(s)
}

// want says which names matter.
func (h *hub) want(names []procevent.Name) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.names = names
	return h.current.want(names)
}

// lost returns how many events all streams have lost that may have been anybody's.
func (h *hub) lost() uint64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.current.lost()
}

// lostOf adds to these what a view has lost itself.
func (h *hub) lostOf(v *view) uint64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.current.lost() + v.refused + h.current.refused(v.id)
}

// status tells by which way events come, and whether they do at present.
func (h *hub) status() (status Status, running bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return Status{Mode: h.current.mode, Reason: h.current.reason, Lost: h.current.lost()}, h.current.stream != nil
}

// taken says whether a view has the process.
func (h *hub) taken(k key) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	m, ok := h.members[k.pid]
	return ok && (m.start == 0 || m.start == k.start)
}

// size is how many members there are.
func (h *hub) size() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.members)
}

// mark is what prune goes by.
func (h *hub) mark() uint64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.added
}

// prune forgets members whose end was not told, of those that there were before
// it was looked who is there, and returns how many are left.
func (h *hub) prune(there map[int]uint64, mark uint64) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	maps.DeleteFunc(h.members, func(pid int, m member) bool {
		start, ok := there[pid]
		return m.number <= mark && (!ok || m.start != 0 && m.start != start)
	})
	return len(h.members)
}

// event passes an event on. It may wait for the state.
func (h *hub) event(ctx context.Context, e event) {
	if v := h.viewOf(&e); v != nil {
		e.Member = true
		v.put(e.Event)
		return
	}
	if e.Kind != track.Exec {
		return
	}
	e.Member = false
	select {
	case h.candidates <- e:
	case <-ctx.Done():
	}
}

// viewOf keeps the list of members and returns who listens to the event.
func (h *hub) viewOf(e *event) *view {
	h.mu.Lock()
	defer h.mu.Unlock()
	of := e.PID
	if e.Kind == track.Fork {
		of = e.Parent
	}
	id := e.view
	if !e.tagged {
		id = h.members[of].view
	}
	v := h.views[id]
	switch {
	case e.Kind == track.Exit && e.Last: // else other threads may live on
		delete(h.members, e.PID)
	case e.Kind == track.Fork && v != nil:
		h.join(e.PID, member{view: id, start: e.StartTicks})
	case e.Kind == track.Fork && !h.members[e.PID].bornBy(*e):
		delete(h.members, e.PID) // its number was somebody else's before
	}
	return v
}

// join notes a member. The caller holds mu.
func (h *hub) join(pid int, m member) {
	h.added++
	m.number = h.added
	h.members[pid] = m
}

// add makes a process and what it forks from now on members of a view, unless it is
// one of another view's, whose listener may be somebody else's.
func (h *hub) add(pid int, view uint32) error {
	m := member{view: view}
	if stat, err := procid.ReadStat(pid); err == nil {
		m.start, m.known = stat.StartTicks, uint64(clock.Monotonic())
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if other, ok := h.members[pid]; ok && other.view != view && other.start == m.start && m.start != 0 {
		return fmt.Errorf("process %d belongs to another session", pid)
	}
	h.join(pid, m)
	err := h.current.follow(pid, view)
	if errors.Is(err, procid.ErrGone) {
		delete(h.members, pid)
	}
	return err
}

// account accounts for a process that waits to be a member.
func (h *hub) account(pid int) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.current.account(pid)
}

// remove ends the membership of a process in a view.
func (h *hub) remove(pid int, view uint32) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.members[pid].view != view {
		return nil
	}
	delete(h.members, pid)
	return h.current.unfollow(pid)
}

// drop forgets a view and lets its processes go: another registration may mean
// them.
func (h *hub) drop(view uint32) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.views, view)
	var errs []error
	for pid, m := range h.members {
		if m.view != view {
			continue
		}
		h.rescan.Ring()
		delete(h.members, pid)
		errs = append(errs, h.current.unfollow(pid))
	}
	return errors.Join(errs...)
}
