// SPDX-License-Identifier: Apache-2.0

package trials

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
	// Others is how many proposals there may be beside those of the values that are tried.
	Others = maxFailures + maxResults
	// mostAsked is how often the search is asked, and mostKnown how often in a row it
	// may ask for what is known, until it is taken to have settled.
	mostAsked, mostKnown = 500, 20
	// mostChanges is how often the program may change the variable itself before it stays
	// for long enough to begin: some set it several times until they are ready.
	mostChanges = 100
)

// Options are what a search goes by.
type Options struct {
	// Variable is what a value is looked for, between its Min and Max.
	Variable Variable
	// Method of the search.
	Method search.Method
	// Tries is how many values are tried at most, and Time after which no further one is.
	Tries int
	Time  time.Duration
	// MinGain is the least gain worth keeping, 0.05 for five per cent.
	MinGain float64
}

// Site is where the values are tried: the tunlet, which knows the processes.
type Site interface {
	// Propose proposes that the variable is set to a value where it counts, for the reason
	// and with the gain in p, and returns the id that it has given to the proposal.
	Propose(h *sdk.Host, p sdk.Proposal, value float64) (id string)
	// Measure asks for what counts progress, or gives it back for a while.
	Measure(h *sdk.Host, on bool)
	// Kept hears that the best value is in force. Its progress is to be reported further on.
	Kept(h *sdk.Host)
	// Over hears that nothing is tried any more, and has everything given back. why is for
	// people; empty: there is nothing to say.
	Over(h *sdk.Host, why string)
}

// Search is the search in one run of a program. Made by New.
type Search struct {
	options Options
	site    Site

	began    time.Time // the first call was seen
	changes  int       // of the variable by the program, before the search began
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

// New begins a search at the first progress of a program.
func New(o Options, site Site, now time.Time) *Search {
	return &Search{options: o, site: site, began: now}
}

// Resume is the search of a program in which one has ended already, before the tunlet was
// started again: its result is in force by a proposal.
func Resume(o Options, site Site, now time.Time, proposal string) *Search {
	s := New(o, site, now)
	s.over, s.trial = true, &trial{id: proposal, result: true}
	return s
}

// Ended says that nothing more is tried.
func (s *Search) Ended() bool { return s.over }

// Count takes an interval in which there was progress so many times, with values of the variable
// from low to high, as Variable.Global captures it, and goes on with the search.
func (s *Search) Count(h *sdk.Host, progress, low, high uint64, seconds float64) {
	s.meter.add(progress, low, high, seconds)
	s.step(h)
}

func (s *Search) step(h *sdk.Host) {
	switch {
	case s.over:
	case s.search == nil:
		s.begin(h)
	case s.meter.disturbed():
		s.giveUpToProgram(h)
	case s.trial != nil:
		s.follow(h)
	case s.meter.ready():
		s.next(h)
	}
}

// Tick ends a rest: the program is measured as it is, and then the next value is tried.
func (s *Search) Tick(h *sdk.Host) {
	switch {
	case s.over:
	case s.pause > 0:
		s.until, s.pause = h.Now().Add(s.pause), 0
	case !s.until.IsZero() && !h.Now().Before(s.until):
		s.until = time.Time{}
		s.site.Measure(h, true)
	}
}

// begin begins the search at the present value, once it is known and stays.
func (s *Search) begin(h *sdk.Host) {
	early := h.Now().Sub(s.began) < warmUp
	if early || s.meter.foreign > 0 || s.meter.mixed || s.meter.last != s.meter.original {
		if s.meter.restart(); !early {
			s.changes++
		}
		if s.changes > mostChanges {
			s.giveUpToProgram(h)
		}
		return
	}
	if !s.meter.ready() {
		return
	}
	o := search.Options{
		Knobs: []search.Knob{s.options.Variable.Knob}, Method: s.options.Method, Tries: mostAsked,
		Time: s.options.Time, MinGain: worthFurther,
	}
	if now, k := s.ownValue(), s.options.Variable.Knob; now >= k.Min && now <= k.Max {
		o.Start = search.Point{now}
	}
	begun, err := search.New(o)
	if err != nil { // options that Configure has seen: cannot be
		s.finish(h, err.Error())
		return
	}
	s.search = begun
	s.next(h)
}

// ownValue is the value that the variable has of itself.
func (s *Search) ownValue() float64 { return s.options.Variable.number(s.meter.original) }

// next proposes the value that the search asks for, or its result.
func (s *Search) next(h *sdk.Host) {
	if s.results > 0 {
		s.result(h)
		return
	}
	for range mostKnown {
		p, err := s.search.Next(h.Now().Sub(s.began))
		if err != nil { // the time is over, or nothing better is expected
			break
		}
		gain, known := s.knownGain(p[0])
		if !known && s.tried == s.options.Tries {
			break
		}
		if !known {
			s.tried++
			s.propose(h, &trial{point: p}, 0, s.soFar(p[0]))
			return
		}
		if err := s.search.Tell(p, gain); err != nil {
			s.finish(h, err.Error())
			return
		}
	}
	s.result(h)
}

// knownGain is what is known of a value that was tried, or that the variable has of itself.
// A trial is long enough to say what another one would: it is not repeated.
func (s *Search) knownGain(v float64) (gain float64, ok bool) {
	if s.options.Variable.bits(v) == s.meter.original {
		return 1, true
	}
	for _, one := range s.search.Trials() {
		if s.options.Variable.alike(one.Point[0], v) {
			return one.Value, true
		}
	}
	return 0, false
}

// soFar is the reason to try a value.
func (s *Search) soFar(v float64) string {
	text := fmt.Sprintf("try %d of %d: %s = %v in place of %v", s.tried, s.options.Tries, s.options.Variable.Name, v, s.ownValue())
	if best, ok := s.search.Best(); ok && s.tried > 1 {
		text += fmt.Sprintf("; so far %v is the best, with %.3g times the calls", best.Point[0], best.Value)
	}
	return text
}

// result proposes the best value, to stay, unless it is the original one or hardly
// better.
func (s *Search) result(h *sdk.Host) {
	best, ok := s.search.Best()
	switch {
	case !ok:
		s.finish(h, "nothing could be measured")
	case best.Value < 1+s.options.MinGain || s.options.Variable.bits(best.Point[0]) == s.meter.original:
		s.finish(h, fmt.Sprintf("%d values tried in %.0f s, none better than %v", s.tried, h.Now().Sub(s.began).Seconds(), s.ownValue()))
	case s.results == maxResults:
		s.finish(h, fmt.Sprintf("%d values tried in %.0f s, none that could be proven to be better", s.tried, h.Now().Sub(s.began).Seconds()))
	default:
		s.results++
		s.propose(h, &trial{point: best.Point, result: true}, best.Value, fmt.Sprintf(
			"%d values tried in %.0f s; the best is %s = %v, with %.3g times the calls of %v",
			s.tried, h.Now().Sub(s.began).Seconds(), s.options.Variable.Name, best.Point[0], best.Value, s.ownValue()))
	}
}

// giveUpToProgram leaves the variable to the program.
func (s *Search) giveUpToProgram(h *sdk.Host) {
	v := s.options.Variable
	s.GiveUp(h, fmt.Sprintf("%s is %v, which nobody asked for: the program sets it itself", v.Name, v.number(s.meter.last)))
}

// GiveUp ends the search and what it has in force.
func (s *Search) GiveUp(h *sdk.Host, why string) {
	if one := s.trial; one != nil && !one.leaving {
		one.leaving = true
		h.Withdraw(one.id, why)
	}
	s.finish(h, why)
}

// finish ends the search without a result, and gives the measure points back.
func (s *Search) finish(h *sdk.Host, why string) {
	s.over = true
	s.site.Over(h, why)
}
