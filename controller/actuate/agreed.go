// SPDX-License-Identifier: Apache-2.0

package actuate

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
)

// Numbered is a function of a process whose calls are counted since the
// process began.
type Numbered interface {
	// Calls says how many have begun; it wraps.
	Calls() uint32
	// Call makes a call before the function's next one.
	Call(ctx context.Context, call Call) (result uint64, where string, err error)
	// Prepare makes everything ready for a call before the function's call with
	// that number.
	Prepare(call Call, number uint32) (Prepared, error)
}

// Prepared is a call that waits for another call's number. Release or Cancel
// comes next.
type Prepared interface {
	// Release lets it be made. It is one store, which cannot fail.
	Release()
	// Cancel withdraws it; false if it is being made or has been.
	Cancel() bool
	// Result is what it returned; false until it has.
	Result() (result uint64, where string, done bool, err error)
}

// Bounds of an agreement.
const (
	// aheadCalls and aheadTime are how far ahead a number is agreed on, in
	// calls and in time at the present rate. Half of it must be left when
	// everything is prepared.
	aheadCalls = 16
	aheadTime  = 300 * time.Millisecond
	rateTime   = 20 * time.Millisecond
	// agreedTries bounds how often the number came too near meanwhile.
	agreedTries = 3
	// agreedGrace is how long the others are waited for once one process has
	// made its call: they are about to.
	agreedGrace = 20 * time.Second
	agreedPoll  = 200 * time.Microsecond
)

// errMissed says that the processes are no longer equal.
var errMissed = errors.New("a process went past the agreed call")

// party is one process of an agreement.
type party struct {
	name     string
	alive    func() bool
	function Numbered
	call     Call
	prepared Prepared
	done     bool
	result   uint64
	where    string
}

// agreement makes one call in each of several processes before the same call
// of a function that all of them call equally often.
//
// No process can be asked to wait, so a number is chosen that none will reach
// soon; everything is prepared in all of them; and if no counter has come near
// meanwhile, the calls are released, one store each. Until then nothing can
// have happened in any, and afterwards nothing can fail but the controller: if
// it were stopped for longer than the time ahead in the middle of these stores,
// some processes would go past the number. That is found and reported.
type agreement struct{ parties []*party }

// run makes the calls. ErrNoSafePoint of the context's end: none was made.
func (g *agreement) run(ctx context.Context) error {
	for range agreedTries {
		number, ahead, err := g.choose(ctx)
		if err != nil {
			return err
		}
		if err := g.prepare(number); err != nil {
			return err
		}
		if g.left(number) < int64(ahead/2) {
			g.cancel()
			continue
		}
		for _, p := range g.parties {
			p.prepared.Release()
		}
		return g.wait(ctx, number)
	}
	return errors.New("the processes call the function faster than they could be prepared")
}

// choose looks at the counters for a moment and picks a number ahead of all.
func (g *agreement) choose(ctx context.Context) (number, ahead uint32, err error) {
	before := g.counts()
	select {
	case <-ctx.Done():
		return 0, 0, context.Cause(ctx)
	case <-time.After(rateTime):
	}
	now := g.counts()
	first, last, most := now[0], now[0], uint32(0)
	for i, n := range now {
		if int32(n-last) > 0 {
			last = n
		}
		if int32(n-first) < 0 {
			first = n
		}
		most = max(most, n-before[i])
	}
	ahead = aheadCalls + most*uint32(aheadTime/rateTime)
	if last-first > ahead {
		return 0, 0, fmt.Errorf("the processes do not call the function equally often: %d and %d times so far", first, last)
	}
	number = last + ahead
	if number == 0 { // is no number
		number++
	}
	return number, ahead, nil
}

func (g *agreement) counts() []uint32 {
	counts := make([]uint32, len(g.parties))
	for i, p := range g.parties {
		counts[i] = p.function.Calls()
	}
	return counts
}

// left is how many calls the process that is furthest has before the number.
func (g *agreement) left(number uint32) int64 {
	left := int64(1 << 31)
	for _, n := range g.counts() {
		left = min(left, int64(int32(number-n)))
	}
	return left
}

// prepare prepares all, or none.
func (g *agreement) prepare(number uint32) error {
	for i, p := range g.parties {
		prepared, err := p.function.Prepare(p.call, number)
		if err != nil {
			for _, q := range g.parties[:i] {
				q.prepared.Cancel()
			}
			return fmt.Errorf("%s: %w", p.name, err)
		}
		p.prepared, p.done = prepared, false
	}
	return nil
}

// cancel withdraws what can be withdrawn, and returns those.
func (g *agreement) cancel() (withdrawn []*party) {
	for _, p := range g.parties {
		if !p.done && p.prepared.Cancel() {
			withdrawn = append(withdrawn, p)
		}
	}
	return withdrawn
}

// wait returns when all calls have been made, or all are withdrawn: never
// while some were made and others still can be.
func (g *agreement) wait(ctx context.Context, number uint32) error {
	var grace <-chan time.Time
	for {
		if done, err := g.look(); done || err != nil {
			return err
		}
		if ended := g.ended(); ended != "" {
			g.cancel()
			return fmt.Errorf("%s has ended meanwhile", ended)
		}
		switch over := ctx.Err() != nil; {
		case grace != nil:
			select {
			case <-grace:
				return fmt.Errorf("%w or hangs: %s", errMissed, g.behind())
			default:
			}
		case over && !g.begun(number):
			if withdrawn := g.cancel(); len(withdrawn) == len(g.parties) {
				return fmt.Errorf("%w: no call %d of the function: %w", errNotReached, number, context.Cause(ctx))
			} else if err := again(withdrawn, number); err != nil {
				return err
			}
			fallthrough
		case over:
			grace = time.After(agreedGrace)
		}
		time.Sleep(agreedPoll)
	}
}

// errNotReached says that the agreed call did not come in time.
var errNotReached = errors.New("safe point not reached, everything was withdrawn")

// again releases what was withdrawn a moment too late: one process had begun.
// None of the others can be past the number yet.
func again(withdrawn []*party, number uint32) error {
	for _, p := range withdrawn {
		prepared, err := p.function.Prepare(p.call, number)
		if err != nil {
			return fmt.Errorf("%s: %w: %w", p.name, errMissed, err)
		}
		prepared.Release()
		p.prepared = prepared
	}
	return nil
}

// look notes which calls have been made.
func (g *agreement) look() (all bool, err error) {
	all = true
	for _, p := range g.parties {
		if p.done {
			continue
		}
		if p.result, p.where, p.done, err = p.prepared.Result(); err != nil {
			return false, fmt.Errorf("%s: %w", p.name, err)
		}
		all = all && p.done
	}
	return all, nil
}

// begun says whether any process has come to the number.
func (g *agreement) begun(number uint32) bool {
	return g.left(number) <= 0 || slices.ContainsFunc(g.parties, func(p *party) bool { return p.done })
}

// ended names a process that did not live to make its call.
func (g *agreement) ended() string {
	for _, p := range g.parties {
		if !p.done && !p.alive() {
			return p.name
		}
	}
	return ""
}

// behind names the processes that have not made their call.
func (g *agreement) behind() (names []string) {
	for _, p := range g.parties {
		if !p.done {
			names = append(names, p.name)
		}
	}
	return names
}
