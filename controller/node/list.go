// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/attune-hpc/attune/internal/metrics"
	"github.com/attune-hpc/attune/internal/procid"
	"github.com/attune-hpc/attune/internal/registry"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// sessions are those that have processes here. Each process is of one of them. Its
// methods may be called from any goroutine.
type sessions struct {
	log     *slog.Logger
	metrics *metrics.Registry
	workers *workers
	// heldUntil is until when, nanoseconds since boot, sessions that end with the node
	// hold what is proven good; 0: they hold nothing.
	heldUntil atomic.Int64
	// serve runs a session until nothing is left of it here. It is set before workers may
	// start.
	serve func(context.Context, *session)

	// mu guards what follows, and what waits for each session; it is held while
	// controllers are asked what they have.
	mu     sync.Mutex
	off    string // why Attune is switched off; empty: it is not
	all    map[sessionKey]*session
	over   map[sessionKey]concluded
	lost   map[uint32]int // how many sessions of a user were given up
	number int            // of sessions so far
}

// concluded is a session of which nothing is taken for a while.
type concluded struct {
	until time.Time
	of    *attunev1.Registration // what asks for something else is taken; nil: nothing is
}

func newSessions(w *workers, m *metrics.Registry, log *slog.Logger) *sessions {
	return &sessions{
		log: log, metrics: m, workers: w, all: make(map[sessionKey]*session),
		over: make(map[sessionKey]concluded), lost: make(map[uint32]int),
	}
}

// refused counts a process that is left alone.
func (l *sessions) refused(reason string) { l.metrics.Add(metrics.NodeRefused, 1, reason) }

// takeProcess gives a session a process, which belongs to it from then on. Who knows
// that the session is unwanted is told so.
func (l *sessions) takeProcess(o order, process *procid.Process) (*session, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	s, err := l.enter(o, process)
	if r, ok := errors.AsType[*refusal](err); ok {
		l.refused(r.reason)
	}
	return s, err
}

// enter is takeProcess for a caller that holds mu.
func (l *sessions) enter(o order, process *procid.Process) (*session, error) {
	key := o.key()
	switch {
	case !l.workers.opened():
		return nil, errClosed
	case l.off != "":
		return nil, &refusal{errors.New(l.off), metrics.RefusedOff}
	case l.unwanted(o):
		return nil, &refusal{errors.New("this session has ended"), metrics.RefusedEnded}
	case l.lost[key.uid] >= maxLost:
		return nil, errLost
	}
	s := l.all[key]
	switch holder := l.holder(process); {
	case holder != nil && holder == s:
		return s, process.Close() // it was given twice
	case holder != nil:
		return nil, &refusal{fmt.Errorf("process %d belongs to the session of registration %s already", process.PID(), holder.key.registration), metrics.RefusedTaken}
	case key.uid != 0 && l.waitingOf(key.uid) >= maxWaitingOfUser:
		return nil, errTooManyWait
	case s == nil && key.uid != 0 && l.countOf(key.uid) >= maxSessionsOfUser:
		return nil, errTooMany
	case s == nil:
		if s = l.begin(o); s == nil {
			return nil, errClosed
		}
	}
	s.waiting = append(s.waiting, process)
	s.woken.Ring()
	return s, nil
}

// countOf counts those of a user. The caller holds mu.
func (l *sessions) countOf(uid uint32) (count int) {
	for key := range l.all {
		if key.uid == uid {
			count++
		}
	}
	return count
}

// holder is the session that has a process, nil if none has: one process has one
// controller, whoever hands it over once more. The caller holds mu.
func (l *sessions) holder(process *procid.Process) *session {
	for _, s := range l.all {
		if s.has(process) {
			return s
		}
	}
	return nil
}

// begin makes a session and has it served; nil if the node is ending. The caller
// holds mu.
func (l *sessions) begin(o order) *session {
	s := newSession(l.number+1, o, l.log)
	if !l.workers.start(func(ctx context.Context) { l.serve(ctx, s) }) {
		return nil
	}
	l.number++
	l.all[s.key] = s
	return s
}

// waitingOf counts those that wait for sessions of a user. The caller holds mu.
func (l *sessions) waitingOf(uid uint32) (count int) {
	for key, s := range l.all {
		if key.uid == uid {
			count += len(s.waiting)
		}
	}
	return count
}

// retire takes a session out of the list if no process waits for it, or if
// those that do have ended, where that is enough.
func (l *sessions) retire(s *session, endedIsEnough bool) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, process := range s.waiting {
		if !endedIsEnough || process.Alive() {
			return false
		}
	}
	l.drop(s)
	return true
}

// forget takes a session out of the list.
func (l *sessions) forget(s *session) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.drop(s)
}

// drop takes a session out of the list, with those that wait for it. The caller holds
// mu.
func (l *sessions) drop(s *session) {
	if l.all[s.key] == s {
		delete(l.all, s.key)
	}
	for _, process := range s.waiting {
		_ = process.Close() // it is open until here
	}
	s.waiting = nil
}

// lives says whether a session, or another one of its key, is in the list.
func (l *sessions) lives(s *session) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.all[s.key] != nil
}

// conclude notes that an Analyzer does not want a session.
func (l *sessions) conclude(s *session) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.over[s.key] = concluded{time.Now().Add(overTime), s.order.registration}
}

// giveUp takes a session out of the list for good.
func (l *sessions) giveUp(s *session) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.over[s.key] = concluded{until: time.Now().Add(lostTime)}
	l.lost[s.key.uid]++
	l.metrics.Add(metrics.NodeSessionsLost, 1)
	l.drop(s)
}

// overTime is how long nothing of a session is taken that the Analyzer has
// ended: then it is asked again, which may have another execution by that name.
const overTime = 10 * time.Second

// unwanted says whether the Analyzer has just ended a session, whose registration still asks
// for the same, or it was given up. The caller holds mu.
func (l *sessions) unwanted(o order) bool {
	maps.DeleteFunc(l.over, func(_ sessionKey, e concluded) bool { return time.Now().After(e.until) })
	e, over := l.over[o.key()]
	return over && (e.of == nil || registry.AsksTheSame(e.of, o.registration))
}

// list returns the sessions, in the order of their beginning.
func (l *sessions) list() []*session {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.SortedFunc(maps.Values(l.all), func(a, b *session) int { return a.number - b.number })
}

// switchedOff says whether Attune is switched off here, and why.
func (l *sessions) switchedOff() (why string, off bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.off, l.off != ""
}

// switchOff ends all sessions, which gives everything back, and none begins.
func (l *sessions) switchOff(why string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.off = why
	for _, s := range l.all {
		select {
		case s.switched <- why:
		default: // it is ending for the same reason
		}
	}
}

// switchOn lets sessions begin again.
func (l *sessions) switchOn() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.off = ""
}
