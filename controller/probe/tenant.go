// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/attune-hpc/attune/controller/budget"
	"github.com/attune-hpc/attune/controller/sites"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// tenant is one process in which points are placed. Its methods may be called from any
// goroutine unless they say that the caller holds mu.
type tenant struct {
	points *points
	work   *work
	// handOver is that of tenants.
	handOver func(numbers []int, then func(*sites.Kept, error))

	mu   sync.Mutex // held while something is placed, one at a time but for lockAll
	gone bool
	// moved are points that were in the process before DMLib came, and are not yet again.
	moved map[uint16]absence
	occupancy
	retry retry

	wishes wishes // that wait for mu
}

// wishes are those that came while others were being fulfilled. They are
// fulfilled together: what a hundred points need of a process is read once, and
// waits for one safe point.
type wishes struct {
	mu      sync.Mutex // guards what follows; comes before that of work
	waiting []wish
	busy    bool // some goroutine will look again
}

// ask has a wish fulfilled. It returns at once.
func (t *tenant) ask(w wish) {
	q := &t.wishes
	q.mu.Lock()
	defer q.mu.Unlock()
	q.waiting = append(q.waiting, w)
	if !q.busy {
		q.busy = true
		t.work.begin(t.fulfilAll)
	}
}

// fulfilAll goes on until nobody wishes anything.
func (t *tenant) fulfilAll() {
	for {
		q := &t.wishes
		q.mu.Lock()
		some := q.waiting
		q.waiting, q.busy = nil, len(some) > 0
		q.mu.Unlock()
		if len(some) == 0 {
			return
		}
		t.fulfil(t.work.ctx, some, false)
		for _, w := range some {
			if w.done != nil {
				w.done()
			}
		}
	}
}

// fulfil takes points out and places others. It returns false if ctx ended
// before a held process had all its points.
func (t *tenant) fulfil(ctx context.Context, wishes []wish, held bool) (all bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.gone {
		return true
	}
	defer t.tryAgain()
	defer t.begin()()
	var gone, wanted []wish
	for _, w := range wishes {
		if w.back {
			t.letGo(w.index)
		}
		switch {
		case w.gone:
			gone = append(gone, w)
		case t.leaves(w): // it would find its own breakpoint, and is asked for again
		case t.points.has(w.index, w.spec):
			wanted = append(wanted, w)
		}
	}
	t.remove(ctx, gone)
	if len(wanted) > 1 {
		defer t.prepare(ctx, wanted, held)()
	}
	all = true
	for _, w := range wanted {
		all = t.place(ctx, w.index, w.spec, held) && all
	}
	return all
}

// tryAgain has what was refused, in part or whole, for what may pass tried again, if there
// is any. The caller holds t.mu.
func (t *tenant) tryAgain() {
	if len(t.busy(t.points)) == 0 {
		t.retry.pause = 0
		return
	}
	t.retry.after(t.work, t.process, func() {
		t.mu.Lock()
		t.retry.waiting = false
		wishes, recalls := t.busy(t.points), t.recallBusy()
		t.mu.Unlock()
		t.fulfil(t.work.ctx, wishes, false)
		if recalls {
			t.uprobes.kernel.recall()
		}
	})
}

// place puts a point into the process, or more of it if it is there already,
// and tells the outcome where something changed. False if that failed because
// ctx ended while the process was held: nothing is told, it is to be tried
// again. The caller holds t.mu.
func (t *tenant) place(ctx context.Context, index uint16, spec *attunev1.MeasurePoint, held bool) bool {
	if t.gone || !t.points.has(index, spec) {
		return true // ended, or removed while this goroutine was on its way
	}
	if earlier := t.placed[index]; earlier != nil && earlier.spec != spec {
		t.takeOut(ctx, index) // its removal is on its way as well, and finds it gone
	}
	if d := t.degraded[index]; d.spec == spec && d.level == budget.Off {
		return true
	}
	if t.endangered(index) {
		absent := absence{spec: spec, since: time.Now(), late: t.placed[index].late}
		t.recalled[index] = recalled{absence: absent, back: true}
		t.takeOut(ctx, index)
	}
	before, again := t.placed[index]
	now, err := t.named(spec)
	level := t.degraded.level(index, spec)
	p := before
	switch {
	case err != nil:
	case !again:
		p, err = t.serve(ctx, index, now, level, held)
	default:
		p, err = t.extend(ctx, index, delivered(now, level), before, held)
	}
	switch {
	case err != nil && held && ctx.Err() != nil:
		return false
	case errors.Is(err, errExpected):
	case again && (err != nil || slices.Equal(p.symbols, before.symbols)):
	case t.refused[index].spec == spec && ended(t.process, err): // the reason told is the better one
	case t.refused[index] == refusal{spec, true} && passes(err): // it was told
	case err != nil:
		t.refuse(index, spec, err)
	default:
		if !again && !t.settleRecalled(index, p) {
			// One that was held until its patience ended has run on meanwhile.
			p.late = t.late(index, spec, p.expected || held && ctx.Err() == nil)
		}
		t.tell(index, spec, p, nil)
	}
	return true
}

// placeAll returns false if ctx ended before a held process had all its points.
func (t *tenant) placeAll(ctx context.Context, held bool) (all bool) {
	return t.fulfil(ctx, t.points.meantFor(t.process.Handle()), held)
}

// endangered says whether a point must not stay as it is: its return probes could end
// the process by what it has loaded since. The caller holds t.mu.
func (t *tenant) endangered(index uint16) bool {
	if p := t.placed[index]; p == nil || !p.atReturn {
		return false
	}
	images, err := t.images()
	return err == nil && t.returnProbes(images) != nil // else it has ended
}

// late is for how long the process has run while the point was wanted and not there; in time
// says that it is there before the process calls anything. The caller holds t.mu.
func (t *tenant) late(index uint16, spec *attunev1.MeasurePoint, inTime bool) time.Duration {
	before, moved := t.moved[index]
	moved = moved && before.spec == spec
	delete(t.moved, index)
	switch {
	case moved && inTime:
		return before.late
	case moved:
		return before.now()
	case inTime:
		return 0
	}
	from := t.process.Started()
	if _, asked := t.points.at(index); asked.After(from) {
		from = asked
	}
	return max(0, time.Since(from))
}

// refuse tells that a point is not placed; or, where patches have to give way
// first, has them do so and the point placed then. The caller holds t.mu.
func (t *tenant) refuse(index uint16, spec *attunev1.MeasurePoint, err error) {
	patched := patchedError{}
	if !errors.As(err, &patched) {
		t.tell(index, spec, nil, err)
		return
	}
	t.makeWay(index, patched, func(kept *sites.Kept, err error) {
		if err == nil {
			t.ask(wish{index: index, spec: spec, done: func() { t.uprobes.kernel.giveBack(kept) }})
			return
		}
		t.mu.Lock()
		defer t.mu.Unlock()
		if !t.gone && t.placed[index] == nil && t.points.has(index, spec) {
			t.tell(index, spec, nil, err)
		}
	})
}

// makeWay has patches give way to the uprobe of a point, which then places. The caller
// holds t.mu.
func (t *tenant) makeWay(index uint16, patched patchedError, then func(*sites.Kept, error)) {
	if patched.by.why != "" {
		t.turns[index] = patched.by
	}
	t.handOver(patched.numbers, then)
}

func (t *tenant) removeAll(ctx context.Context) {
	t.mu.Lock()
	defer t.mu.Unlock()
	defer t.begin()()
	t.takeOut(ctx, slices.Collect(maps.Keys(t.placed))...)
}
