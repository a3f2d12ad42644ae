// SPDX-License-Identifier: Apache-2.0

package searching

import (
	"fmt"
	"time"

	"github.com/attune-hpc/attune/tunlets/sdk"
	"github.com/attune-hpc/attune/tunlets/sdk/search"
)

const (
	// warmUp is how long the first calls do not count: a program that starts touches
	// memory, fills caches and sets its variables.
	warmUp = 500 * time.Millisecond
	// worthFurther ends a search when less than this part of the best is expected of a
	// further try: a narrow peak is not expected before it was seen.
	worthFurther = 0.002
	// maxFailures is how often a proposal may be refused or fail, and maxResults how
	// many values may be proposed to stay.
	maxFailures, maxResults = 3, 2
	// mostAsked is how often the search is asked, and mostKnown how often in a row it
	// may ask for what is known, until it is taken to have settled.
	mostAsked, mostKnown = 500, 20
)

// run is the search in one run of the program.
type run struct {
	began    time.Time // the first call was seen
	meter    meter
	search   *search.Search // nil: the present value is not known yet
	tried    int
	trial    *trial        // on its way or in force; nil: none
	pause    time.Duration // that begins with the next tick: what is told of a proposal has no time
	until    time.Time     // nothing is measured before; zero: no matter
	failures int
	results  int
	over     bool // nothing more is tried
}

// step goes on with the search, at each interval of the lead.
func (t *Tunlet) step(h *sdk.Host) {
	r := t.run
	switch {
	case r.over:
	case r.search == nil:
		t.begin(h)
	case r.meter.disturbed():
		t.giveUp(h, fmt.Sprintf("%s is %v, which nobody asked for: the program sets it itself", t.program.variable, t.program.number(r.meter.last)))
	case r.trial != nil:
		t.follow(h)
	case r.meter.ready():
		t.next(h)
	}
}

// Tick ends a rest: the program is measured as it is, and then the next value is tried.
func (t *Tunlet) Tick(h *sdk.Host) {
	switch r := t.run; {
	case r == nil || r.over:
	case r.pause > 0:
		r.until, r.pause = h.Now().Add(r.pause), 0
	case !r.until.IsZero() && !h.Now().Before(r.until):
		r.until = time.Time{}
		t.watch(h, t.lead, t.members[t.lead])
	}
}

// begin begins the search at the present value, once it is known and stays.
func (t *Tunlet) begin(h *sdk.Host) {
	r := t.run
	early := h.Now().Sub(r.began) < warmUp
	if early || r.meter.foreign > 0 || r.meter.mixed || r.meter.last != r.meter.original {
		r.meter.restart()
		return
	}
	if !r.meter.ready() {
		return
	}
	o := search.Options{
		Knobs: []search.Knob{t.program.knob}, Method: t.program.method, Tries: mostAsked,
		Time: t.program.time, MinGain: worthFurther,
	}
	if now, k := ownValue(t), t.program.knob; now >= k.Min && now <= k.Max {
		o.Start = search.Point{now}
	}
	s, err := search.New(o)
	if err != nil { // options that Configure has seen: cannot be
		t.finish(h, err.Error())
		return
	}
	r.search = s
	t.next(h)
}

// ownValue is the value that the variable has of itself.
func ownValue(t *Tunlet) float64 { return t.program.number(t.run.meter.original) }

// next proposes the value that the search asks for, or its result.
func (t *Tunlet) next(h *sdk.Host) {
	r := t.run
	if r.results > 0 {
		t.result(h)
		return
	}
	for range mostKnown {
		p, err := r.search.Next(h.Now().Sub(r.began))
		if err != nil { // the time is over, or nothing better is expected
			break
		}
		gain, known := knownGain(t, p[0])
		if !known && r.tried == t.program.tries {
			break
		}
		if !known {
			r.tried++
			t.propose(h, &trial{point: p}, 0, soFar(t, p[0]))
			return
		}
		if err := r.search.Tell(p, gain); err != nil {
			t.finish(h, err.Error())
			return
		}
	}
	t.result(h)
}

// knownGain is what is known of a value that was tried, or that the variable has of itself.
// A trial is long enough to say what another one would: it is not repeated.
func knownGain(t *Tunlet, v float64) (gain float64, ok bool) {
	if t.program.bits(v) == t.run.meter.original {
		return 1, true
	}
	for _, one := range t.run.search.Trials() {
		if t.program.alike(one.Point[0], v) {
			return one.Value, true
		}
	}
	return 0, false
}

// soFar is the reason to try a value.
func soFar(t *Tunlet, v float64) string {
	text := fmt.Sprintf("try %d of %d: %s = %v in place of %v", t.run.tried, t.program.tries, t.program.variable, v, ownValue(t))
	if best, ok := t.run.search.Best(); ok && t.run.tried > 1 {
		text += fmt.Sprintf("; so far %v is the best, with %.3g times the calls", best.Point[0], best.Value)
	}
	return text
}

// result proposes the best value, to stay, unless it is the original one or hardly
// better.
func (t *Tunlet) result(h *sdk.Host) {
	r := t.run
	best, ok := r.search.Best()
	switch {
	case !ok:
		t.finish(h, "nothing could be measured")
	case best.Value < 1+minGain || t.program.bits(best.Point[0]) == r.meter.original:
		t.finish(h, fmt.Sprintf("%d values tried in %.0f s, none better than %v", r.tried, h.Now().Sub(r.began).Seconds(), ownValue(t)))
	case r.results == maxResults:
		t.finish(h, fmt.Sprintf("%d values tried in %.0f s, none that could be proven to be better", r.tried, h.Now().Sub(r.began).Seconds()))
	default:
		r.results++
		t.propose(h, &trial{point: best.Point, result: true}, best.Value, fmt.Sprintf(
			"%d values tried in %.0f s; the best is %s = %v, with %.3g times the calls of %v",
			r.tried, h.Now().Sub(r.began).Seconds(), t.program.variable, best.Point[0], best.Value, ownValue(t)))
	}
}

// giveUp ends the search and what it has in force.
func (t *Tunlet) giveUp(h *sdk.Host, why string) {
	if one := t.run.trial; one != nil && !one.leaving {
		one.leaving = true
		h.Withdraw(one.id, why)
	}
	t.finish(h, why)
}

// finish ends the search without a result, and gives the measure points back.
func (t *Tunlet) finish(h *sdk.Host, why string) {
	t.run.over = true
	h.Remark(t.lead, "%s", why)
	for _, p := range t.handles() {
		t.members[p].unwatch(h, p)
	}
}
