// SPDX-License-Identifier: Apache-2.0

package discover

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"sync"

	"github.com/attune-hpc/attune/controller/bpf/procevent"
	"github.com/attune-hpc/attune/controller/track"
	"github.com/attune-hpc/attune/internal/procid"
	"github.com/attune-hpc/attune/internal/queue"
)

// event is one of the node's.
type event struct {
	track.Event
	// tagged says that the stream knows who is a member of which view, and view
	// which one that is; 0: of none.
	tagged bool
	view   uint32
	// program is what was executed, if the stream tells.
	program *procevent.Program
}

// member is a process of a view.
type member struct {
	view   uint32
	start  uint64 // clock ticks since boot; 0 if unknown
	number uint64 // of members so far
}

// candidatesQueued bounds the processes that wait to be looked at; more wait in
// the stream, whose own buffer counts what does not fit.
const candidatesQueued = 1024

// hub stands between the stream of the day and all who listen: it survives
// every stream, and tells the next one whom to follow.
type hub struct {
	log        *slog.Logger
	candidates chan event
	rescan     queue.Bell // rung when something may have been missed

	mu      sync.Mutex // guards what follows
	stream  stream     // nil before the first
	mode    string
	reason  string // why not by the best way
	names   []procevent.Name
	views   map[uint32]*view
	lastID  uint32
	members map[int]member
	added   uint64 // members so far
	before  uint64 // events that earlier streams have lost
}

func newHub(log *slog.Logger) *hub {
	return &hub{
		log: log, candidates: make(chan event, candidatesQueued), rescan: queue.NewBell(),
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
		if err := s.follow(pid, m.view); err != nil {
			return err
		}
	}
	if h.mode != "" { // what happened since the last one is lost
		h.before++
	}
	h.stream, h.mode, h.reason = s, s.mode(), reason
	h.missed()
	return nil
}

// leave is the end of a stream: until the next one nobody is followed.
func (h *hub) leave(s stream) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.before += s.lost()
	h.stream = nil
}

// missed has the state look at all processes.
func (h *hub) missed() {
	h.rescan.Ring()
}

// want says which names matter.
func (h *hub) want(names []procevent.Name) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.names = names
	if h.stream == nil {
		return nil
	}
	return h.stream.want(names)
}

// lost returns how many events all streams have lost.
func (h *hub) lost() uint64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.stream == nil {
		return h.before
	}
	return h.before + h.stream.lost()
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
	case e.Kind == track.Fork:
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

// add makes a process and what it forks from now on members of a view.
func (h *hub) add(pid int, view uint32) error {
	m := member{view: view}
	if stat, err := procid.ReadStat(pid); err == nil {
		m.start = stat.StartTicks
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.join(pid, m)
	if h.stream == nil {
		return nil
	}
	return h.stream.follow(pid, view)
}

// remove ends the membership of a process in a view.
func (h *hub) remove(pid int, view uint32) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.members[pid].view != view {
		return nil
	}
	delete(h.members, pid)
	if h.stream == nil {
		return nil
	}
	return h.stream.unfollow(pid)
}

// newView adds a view.
func (h *hub) newView() *view {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.lastID++
	v := &view{hub: h, id: h.lastID, events: queue.New[track.Event](viewQueue)}
	h.views[v.id] = v
	return v
}

// drop forgets a view and lets its processes go: another registration may mean
// them.
func (h *hub) drop(v *view) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.views, v.id)
	var errs []error
	for pid, m := range h.members {
		if m.view != v.id {
			continue
		}
		h.missed()
		delete(h.members, pid)
		if h.stream != nil {
			errs = append(errs, h.stream.unfollow(pid))
		}
	}
	return errors.Join(errs...)
}
