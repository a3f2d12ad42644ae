// SPDX-License-Identifier: Apache-2.0

package actuate

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// program calls a function and makes what was prepared for a call before it.
type program struct {
	mu      sync.Mutex
	calls   uint32
	waiting map[*promise]bool
	changed uint32 // the call before which it was; 0: never
	dead    bool
	refuses error
}

type promise struct {
	program  *program
	number   uint32
	released bool
	done     bool
}

func (p *program) Calls() uint32 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.calls
}

func (p *program) Call(context.Context, Call) (uint64, string, error) { return 0, "", nil }

func (p *program) Prepare(_ Call, number uint32) (Prepared, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.refuses != nil {
		return nil, p.refuses
	}
	if p.waiting == nil {
		p.waiting = make(map[*promise]bool)
	}
	made := &promise{program: p, number: number}
	p.waiting[made] = true
	return made, nil
}

func (m *promise) Release() {
	m.program.mu.Lock()
	defer m.program.mu.Unlock()
	m.released = true
}

func (m *promise) Cancel() bool {
	m.program.mu.Lock()
	defer m.program.mu.Unlock()
	delete(m.program.waiting, m)
	return !m.done
}

func (m *promise) Result() (uint64, string, bool, error) {
	m.program.mu.Lock()
	defer m.program.mu.Unlock()
	return 0, fmt.Sprintf("call %d", m.number), m.done, nil
}

// call is one call of the function.
func (p *program) call() {
	p.mu.Lock()
	p.calls++
	for m := range p.waiting {
		if m.released && m.number == p.calls {
			m.done, p.changed = true, p.calls
			delete(p.waiting, m)
		}
	}
	p.mu.Unlock()
}

// run calls at a pace, until it has called so many times.
func (p *program) run(ctx context.Context, pause time.Duration, most uint32) {
	for p.Calls() != most && ctx.Err() == nil {
		time.Sleep(pause)
		p.call()
	}
}

func TestAgreement(t *testing.T) {
	const endless = 1 << 30
	tests := []struct {
		name    string
		setup   func(programs []*program, pace []time.Duration, most []uint32)
		err     error
		text    string
		changed int // programs that were, at the same call
	}{
		{name: "all", changed: 3},
		{name: "slow", setup: func(_ []*program, pace []time.Duration, _ []uint32) {
			for i := range pace {
				pace[i] = 50 * time.Millisecond
			}
		}, changed: 3},
		{name: "counter wraps", setup: func(programs []*program, _ []time.Duration, most []uint32) {
			for i, p := range programs {
				p.calls, most[i] = 1<<32-10, 1<<32-11 // it runs on beyond
			}
		}, changed: 3},
		{name: "nobody comes there", setup: func(_ []*program, _ []time.Duration, most []uint32) {
			for i := range most {
				most[i] = 110
			}
		}, err: errNotReached},
		{name: "one stays behind", setup: func(_ []*program, _ []time.Duration, most []uint32) { most[1] = 110 }, err: errMissed},
		{name: "unequal", setup: func(programs []*program, _ []time.Duration, _ []uint32) { programs[2].calls = 100000 }, text: "equally often"},
		{name: "one refuses", setup: func(programs []*program, _ []time.Duration, _ []uint32) {
			programs[2].refuses = errors.New("mailbox is full")
		}, text: "mailbox is full"},
		{name: "one ends", setup: func(programs []*program, _ []time.Duration, most []uint32) {
			programs[0].dead, most[0] = true, 101
		}, text: "has ended"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				programs := []*program{{calls: 100}, {calls: 100}, {calls: 101}}
				pace := []time.Duration{time.Millisecond, time.Millisecond, time.Millisecond}
				most := []uint32{endless, endless, endless}
				if tt.setup != nil {
					tt.setup(programs, pace, most)
				}
				ctx, stop := context.WithCancel(t.Context())
				var g agreement
				var all sync.WaitGroup
				for i, p := range programs {
					g.parties = append(g.parties, &party{
						name: fmt.Sprintf("program %d", i), function: p, alive: func() bool { return !p.dead || p.Calls() < most[i] },
					})
					all.Go(func() { p.run(ctx, pace[i], most[i]) })
				}
				wait, cancel := context.WithTimeout(ctx, 2*time.Second)
				defer cancel()
				err := g.run(wait)
				stop()
				all.Wait()
				if tt.err == nil && tt.text == "" && err != nil || tt.err != nil && !errors.Is(err, tt.err) ||
					tt.text != "" && (err == nil || !strings.Contains(err.Error(), tt.text)) {
					t.Errorf("error %v", err)
				}
				changed, at := 0, make(map[uint32]bool)
				for i, p := range programs {
					if p.changed != 0 {
						changed++
						at[p.changed] = true
					}
					if len(p.waiting) > 0 && !errors.Is(err, errMissed) {
						t.Errorf("program %d: something is left", i)
					}
				}
				if len(at) > 1 || !errors.Is(err, errMissed) && changed != tt.changed {
					t.Errorf("%d changed, at calls %v", changed, at)
				}
			})
		})
	}
}
