// SPDX-License-Identifier: Apache-2.0

package readers

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/attune-hpc/attune/internal/procid"
	"github.com/attune-hpc/attune/internal/queue"
)

// Pool has helpers. The caller calls Close.
type Pool struct {
	// Lifted is rung when a user is not refused any more: what was not read may be now.
	Lifted queue.Bell

	options Options
	ctx     context.Context // ends with Close
	close   context.CancelFunc
	ending  sync.WaitGroup // helpers
	asRoot  sync.Once      // that helpers are root's is said

	helpers helpers

	mu     sync.Mutex // guards what follows; a leaf lock
	closed bool
	idle   []*helper
	users  map[uint32]*user
}

// user is one whose belongings are read, or refused to be.
type user struct {
	turns   chan struct{} // taken by those that have a helper
	asking  int           // wait for a turn or have one
	hanging int           // helpers that were left behind
	until   time.Time     // when the user is not refused any more
	logged  bool
}

// New returns a pool, which starts helpers when they are needed.
func New(options Options) *Pool {
	options = options.withDefaults()
	p := &Pool{Lifted: queue.NewBell(), options: options, helpers: helpers{pids: make(map[int]bool)}, users: make(map[uint32]*user)}
	p.ctx, p.close = context.WithCancel(context.Background())
	return p
}

// Close ends all helpers and waits for those only that do not hang: one that does ends
// when what it reads does. Whoever asks gets an error from then on.
func (p *Pool) Close() error {
	p.mu.Lock()
	p.closed = true
	idle := p.idle
	p.idle = nil
	p.mu.Unlock()
	p.close()
	for _, h := range idle {
		p.helpers.end(p.ctx, h, func() {})
	}
	p.ending.Wait()
	return nil
}

// end lets go of a helper. The caller does not hold mu.
func (p *Pool) end(h *helper, gone func()) {
	p.mu.Lock()
	closed := p.closed
	if !closed {
		p.ending.Go(func() { p.helpers.end(p.ctx, h, gone) })
	}
	p.mu.Unlock()
	if closed {
		p.helpers.end(p.ctx, h, gone)
	}
}

// Has says whether a child of this process is one of the pool's helpers, which may have ended
// and not be reaped. It waits for a helper that is starting.
func (p *Pool) Has(pid int) bool { return p != nil && p.helpers.has(pid) }

// Refused lists the users who are refused now.
func (p *Pool) Refused() (uids []uint32) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for uid, u := range p.users {
		if u.refused() {
			uids = append(uids, uid)
		}
	}
	return uids
}

func (u *user) refused() bool { return u.hanging > 0 || time.Now().Before(u.until) }

// enter waits until a user may have a helper. The caller calls leave if it may.
func (p *Pool) enter(ctx context.Context, uid uint32) (*user, error) {
	p.mu.Lock()
	u := p.users[uid]
	if u == nil {
		u = &user{turns: make(chan struct{}, perUser)}
		p.users[uid] = u
	}
	if u.refused() {
		p.mu.Unlock()
		return nil, ErrRefused
	}
	u.asking++
	p.mu.Unlock()
	select {
	case u.turns <- struct{}{}:
	case <-ctx.Done():
		p.forget(uid, u)
		return nil, ctx.Err()
	}
	p.mu.Lock()
	refused := u.refused() // while this one waited
	p.mu.Unlock()
	if refused {
		p.leave(uid, u)
		return nil, ErrRefused
	}
	return u, nil
}

func (p *Pool) leave(uid uint32, u *user) {
	<-u.turns
	p.forget(uid, u)
}

// forget drops a user whom nobody asks about and nothing is to be remembered of.
func (p *Pool) forget(uid uint32, u *user) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if u.asking--; u.asking == 0 && !u.refused() && !u.logged {
		delete(p.users, uid)
	}
}

// ask has a helper answer a request about what belongs to a user.
func (p *Pool) ask(ctx context.Context, uid uint32, asked request, slow bool) (reply, error) {
	patience := p.options.Patience
	if slow {
		patience = p.options.SlowPatience
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(p.ctx, cancel)()
	u, err := p.enter(ctx, uid)
	if err != nil {
		return reply{}, p.reason(err)
	}
	defer p.leave(uid, u)
	for {
		h, err := p.take()
		if err != nil {
			return reply{}, fmt.Errorf("start a helper: %w", err)
		}
		used := h.used
		answer, err := h.ask(ctx, asked, patience)
		switch {
		case err == nil:
			p.give(h)
			return answer, nil
		case ctx.Err() != nil:
			p.end(h, func() {})
			return reply{}, p.reason(err)
		case used && !errors.Is(err, os.ErrDeadlineExceeded):
			p.end(h, func() {}) // it may have ended before it was asked
			continue
		}
		p.refuse(uid, u, asked.Operation, h, err)
		return reply{}, ErrRefused
	}
}

// reason is why somebody who waited got no answer.
func (p *Pool) reason(err error) error {
	if p.ctx.Err() != nil {
		return errClosed
	}
	return err
}

// take returns a helper that waits, or a new one.
func (p *Pool) take() (*helper, error) {
	p.mu.Lock()
	if last := len(p.idle) - 1; last >= 0 {
		h := p.idle[last]
		p.idle = p.idle[:last]
		p.mu.Unlock()
		return h, nil
	}
	p.mu.Unlock()
	h, err := p.helpers.start(p.options)
	if err == nil && !h.nobody && os.Geteuid() == 0 {
		p.asRoot.Do(func() {
			p.options.Log.Warn("what reads for this service runs as root, too: CAP_SETUID or CAP_SETGID is missing, or the user namespace lacks user 65534")
		})
	}
	return h, err
}

// give takes a helper back that has answered, unless it has taken its CPU time.
func (p *Pool) give(h *helper) {
	used, err := procid.CPUTime(h.held.PID())
	spent := err != nil || used > p.options.SlowPatience
	p.mu.Lock()
	kept := !p.closed && len(p.idle) < keptIdle && !spent
	if kept {
		p.idle = append(p.idle, h)
	}
	p.mu.Unlock()
	if !kept {
		p.end(h, func() {})
	}
}

// refuse leaves a helper behind that did not answer, and refuses its user until some
// time after it has ended.
func (p *Pool) refuse(uid uint32, u *user, operation string, h *helper, err error) {
	p.mu.Lock()
	u.hanging++
	first := !u.logged
	u.logged = true // once, however often the user has it happen
	p.mu.Unlock()
	if first {
		p.options.Log.Warn("what belongs to a user cannot be read; their processes are left alone until it can",
			"uid", uid, "operation", operation, "error", err)
	}
	p.end(h, func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		u.hanging--
		u.until = time.Now().Add(p.options.Pause)
		time.AfterFunc(p.options.Pause, p.Lifted.Ring)
	})
}
