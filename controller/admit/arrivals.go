// SPDX-License-Identifier: Apache-2.0

package admit

import (
	"slices"
	"sync"
	"time"

	"github.com/attune-hpc/attune/controller/gate"
	"github.com/attune-hpc/attune/controller/member"
	"github.com/attune-hpc/attune/controller/track"
	"github.com/attune-hpc/attune/internal/beat"
	"github.com/attune-hpc/attune/internal/queue"
)

const (
	// settleTime is how old a process is when more is done about it than to
	// know it. To take one in and let it go again takes 1 to 3 ms of CPU time, and a
	// shell script or a build starts hundreds that live shorter than this.
	settleTime = track.Grace
	// soon is when news leave, and when a process that the tracker has told of is
	// taken in without having come to the gate, or waited for.
	soon = beat.Interval
	// gateGrace is how long a new process may take to come to the start gate
	// before it is taken as one without DMLib: the dynamic loader runs first.
	gateGrace = 300 * time.Millisecond
	// gateRounds is how often that time is granted to a process that has
	// DMLib mapped, or no library yet: on a crowded node it may have to wait.
	gateRounds = 10
)

// arrivals are the processes that are young, in the order of their coming, so
// that one timer does for all.
type arrivals struct {
	woken queue.Bell // rung when there is something to wait for

	mu sync.Mutex // guards what follows; a leaf lock
	// greeted are processes, by pid, that have a memory file and have not said
	// yet that they mapped it: one that is let go at once may end before.
	greeted  map[int]bool
	attached waiting[gate.Attachment]
	young    waiting[*member.Member] // will settle
	late     waiting[lateMember]
	news     time.Time // when the outbox is flushed; zero: it is empty
}

// lateMember is a process that has not come to the gate yet.
type lateMember struct {
	member *member.Member
	rounds int // times that it is still waited for
}

// waiting is what is due after a time that is the same for all.
type waiting[T any] struct{ items []queued[T] }

type queued[T any] struct {
	due   time.Time
	value T
}

func newArrivals() *arrivals {
	return &arrivals{woken: queue.NewBell(), greeted: make(map[int]bool)}
}

func (w *waiting[T]) push(value T, after time.Duration) {
	due := time.Now().Add(after)
	if after > 0 {
		due = beat.Near(due)
	}
	w.items = append(w.items, queued[T]{due, value})
}

// pop takes what is due.
func (w *waiting[T]) pop(now time.Time) (due []T) {
	for len(w.items) > 0 && !w.items[0].due.After(now) {
		due = append(due, w.items[0].value)
		w.items[0] = queued[T]{}
		w.items = w.items[1:]
	}
	return due
}

// next returns when the first is due; zero if there is none.
func (w *waiting[T]) next() time.Time {
	if len(w.items) == 0 {
		return time.Time{}
	}
	return w.items[0].due
}

// change changes the queues and wakes the loop if it waits for something later,
// or for nothing.
func (a *arrivals) change(change func()) {
	a.mu.Lock()
	before := a.earliest()
	change()
	after := a.earliest()
	a.mu.Unlock()
	if !before.IsZero() && !after.Before(before) {
		return
	}
	a.woken.Ring()
}

// earliest returns when something is due; zero: nothing is waited for. The
// caller holds mu.
func (a *arrivals) earliest() time.Time {
	return beat.Earliest(time.Time{}, a.attached.next(), a.young.next(), a.late.next(), a.news)
}

// greet notes that a process is given its memory file.
func (a *arrivals) greet(pid int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.greeted[pid] = true
}

// part takes greet back: the process is taken in by others, or refused.
func (a *arrivals) part(pid int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.greeted, pid)
}

// attach keeps a process that runs until it has settled.
func (a *arrivals) attach(attachment gate.Attachment) {
	a.change(func() {
		delete(a.greeted, attachment.PID)
		a.attached.push(attachment, settleTime)
	})
}

// claim takes what a process has brought from the gate that has ended before it
// was taken in, and says whether it had been there. The memory holds nothing: no
// measure point was ever in it.
func (a *arrivals) claim(pid int) (mine []gate.Attachment, came bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	came = a.greeted[pid]
	delete(a.greeted, pid)
	kept := a.attached.items[:0]
	for _, item := range a.attached.items {
		if item.value.PID == pid {
			mine = append(mine, item.value)
			continue
		}
		kept = append(kept, item)
	}
	clear(a.attached.items[len(kept):])
	a.attached.items = kept
	return mine, came || len(mine) > 0
}

// waiting says whether a process has come to the gate and is not taken in yet.
func (a *arrivals) waiting(pid int) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.greeted[pid] || slices.ContainsFunc(a.attached.items, func(item queued[gate.Attachment]) bool {
		return item.value.PID == pid
	})
}

// release lets all go that were not taken in.
func (a *arrivals) release(letGo func(gate.Attachment)) {
	a.mu.Lock()
	left := a.attached.items
	a.attached.items = nil
	a.mu.Unlock()
	for _, item := range left {
		letGo(item.value)
	}
}

func (a *arrivals) next() time.Time {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.earliest()
}

// due is what is to be done about young processes now.
type due struct {
	attached []gate.Attachment
	young    []*member.Member
	late     []lateMember
	news     bool // the outbox is to be flushed
}

// take takes what is due.
func (a *arrivals) take(now time.Time) (d due) {
	a.mu.Lock()
	defer a.mu.Unlock()
	d = due{attached: a.attached.pop(now), young: a.young.pop(now), late: a.late.pop(now)}
	if d.news = !a.news.IsZero() && !a.news.After(now); d.news {
		a.news = time.Time{}
	}
	return d
}

// settle has a member looked at after a time.
func (a *arrivals) settle(m *member.Member, after time.Duration) {
	a.change(func() { a.young.push(m, after) })
}

// wait gives a member time to come to the gate, so often.
func (a *arrivals) wait(m *member.Member, rounds int) {
	a.change(func() { a.late.push(lateMember{m, rounds}, gateGrace) })
}

// tell has the outbox flushed at a time.
func (a *arrivals) tell(at time.Time) {
	a.change(func() { a.news = at })
}
