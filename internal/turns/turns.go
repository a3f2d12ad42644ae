// SPDX-License-Identifier: Apache-2.0

// Package turns knows whether the loops of a service turn: each says so whenever it comes
// round, and one that did not for longer than it may stands.
//
// All of it may be called from any goroutine. A nil *Board has no loops, and a nil *Loop
// does nothing: they are for those whom nobody asks.
package turns

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/attune-hpc/attune/internal/beat"
)

// Board has the loops of a service.
type Board struct {
	mu    sync.Mutex // guards loops
	loops map[*Loop]bool
}

// New returns a board without loops.
func New() *Board { return &Board{loops: make(map[*Loop]bool)} }

// Loop is one that turns. Its owner calls Turn each time it comes round, and End.
type Loop struct {
	board     *Board
	name      string
	limit     time.Duration
	essential bool
	turned    atomic.Int64 // Unix time in nanoseconds, by the clock that is not set
}

// origin makes times of the clock that is not set.
var origin = time.Now()

// Begin adds a loop, which stands if it does not turn within limit. One of somebody's
// own, such as a session, is no reason to start the service anew; an essential one is.
func (b *Board) Begin(name string, limit time.Duration, essential bool) *Loop {
	if b == nil {
		return nil
	}
	l := &Loop{board: b, name: name, limit: limit, essential: essential}
	l.Turn()
	b.mu.Lock()
	defer b.mu.Unlock()
	b.loops[l] = true
	return l
}

// Turn says that the loop comes round.
func (l *Loop) Turn() {
	if l != nil {
		l.turned.Store(int64(time.Since(origin)))
	}
}

// End takes the loop off the board.
func (l *Loop) End() {
	if l == nil {
		return
	}
	l.board.mu.Lock()
	defer l.board.mu.Unlock()
	delete(l.board.loops, l)
}

// Standing is a loop that does not turn.
type Standing struct {
	Name      string
	For       time.Duration
	Essential bool
}

// Standing lists the loops that stand, by name.
func (b *Board) Standing() (standing []Standing) {
	if b == nil {
		return nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for l := range b.loops {
		if since := l.idle(); since > l.limit {
			standing = append(standing, Standing{l.name, since, l.essential})
		}
	}
	slices.SortFunc(standing, func(a, b Standing) int { return cmp.Compare(a.Name, b.Name) })
	return standing
}

// Own is what [Board.Idle] calls loops of somebody's own.
const Own = "session"

// Idle returns for how long each loop has not turned, by name; of all that are somebody's
// own the longest.
func (b *Board) Idle() map[string]time.Duration {
	if b == nil {
		return nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	idle := make(map[string]time.Duration)
	for l := range b.loops {
		name := l.name
		if !l.essential {
			name = Own
		}
		idle[name] = max(idle[name], l.idle())
	}
	return idle
}

// idle is for how long the loop has not turned.
func (l *Loop) idle() time.Duration { return time.Since(origin) - time.Duration(l.turned.Load()) }

// Watch looks at the loops at an interval until ctx ends. It calls changed with each
// loop that has begun to stand, and alive each time that no essential one stands.
func (b *Board) Watch(ctx context.Context, every time.Duration, alive func(), changed func(Standing)) {
	known := make(map[string]bool)
	for {
		stood, names := false, make(map[string]bool)
		for _, s := range b.Standing() {
			stood, names[s.Name] = stood || s.Essential, true
			if !known[s.Name] {
				changed(s)
			}
		}
		known = names
		if !stood {
			alive()
		}
		if !beat.Pause(ctx, every) {
			return
		}
	}
}
