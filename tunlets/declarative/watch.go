// SPDX-License-Identifier: Apache-2.0

package declarative

import (
	"fmt"
	"maps"
	"strings"
	"time"

	"github.com/attune-hpc/attune/tunlets/sdk"
	"github.com/attune-hpc/attune/tunlets/sdk/perprocess"
)

const (
	// windowSpan is how long signals are kept at least.
	windowSpan = time.Second
	// baseline is how many objective samples there must be before a proposal.
	baseline = 5
	// patience is how long a confirmation is waited for, once there is a baseline;
	// lastPatience, if there is none: a process in which little happens is sampled
	// four times a second, and the first details come a second later.
	patience     = time.Second
	lastPatience = 4 * time.Second
	// answer is how long a request may remain without an answer.
	answer = 3 * time.Second
	// defaultTries is Description.MaxTries where the file says nothing.
	defaultTries = 3
)

type state uint8

const (
	quiet    state = iota // no symptom
	asked                 // points asked for
	judging               // symptom, and points in place; the objective is reported
	proposed              // a change is proposed; the objective is reported
	looking               // a change was kept; the objective is reported
	done                  // given up, or kept and between two looks
)

// subject is a process, and what is said of it is called by.
type subject struct{ process sdk.Process }

func (s subject) handle() sdk.Handle { return s.process.Handle }

func (s subject) point(id string) string { return fmt.Sprintf("%s@%d", id, s.handle()) }

// pointOf is the point's name in the file.
func (s subject) pointOf(id string) string {
	name, _, _ := strings.Cut(id, "@")
	return name
}

// phase is how far a watch has come.
type phase struct {
	state state
	since time.Time // when the state began
}

// active says that something is measured.
func (p *phase) active() bool { return p.state != quiet && p.state != done }

func (p *phase) enter(s state, now time.Time) { p.state, p.since = s, now }

// seen is what was seen of the signals of a process.
type seen struct {
	window  *sdk.Window
	lasting time.Duration // of a symptom
}

// span is the time over which a symptom is looked for; false: there is too
// little of it.
func (s seen) span() (sdk.Span, bool) {
	span := s.window.Latest(s.lasting)
	return span, span.Duration() > 0 && span.Duration() >= s.lasting*9/10
}

// latest is the time between the two latest samples.
func (s seen) latest() sdk.Span { return s.window.Latest(time.Nanosecond) }

// reached says whether a level was, over a span; one of two signals was if one of them is
// not known.
func (s seen) reached(span sdk.Span, l sdk.Level) bool {
	value := span.Rate
	if l.Signal.Gauge() {
		value = s.window.Last
	}
	v, ok := value(l.Signal)
	if l.Of == 0 {
		return ok && v >= l.AtLeast
	}
	whole, known := value(l.Of)
	return !ok || !known || v >= l.AtLeast*whole
}

// watch follows one process.
type watch struct {
	subject
	phase

	seen

	tunlet  *Tunlet
	until   time.Time // quiet: not before this
	backoff sdk.Backoff

	heard    time.Time       // of the latest sample
	counted  counts          // of points, since the state `judging` began
	answered map[string]bool // points, and whether they are in place
	pairs    pairs           // what points with `until` count
	details  details
	reported int // values of the objective since then
	proposal string
	kept     bool             // a change is in force
	looks    perprocess.Looks // at it
	tries    uint32

	explained map[string]explained // by what is explained
}

func newWatch(t *Tunlet, p sdk.Process) *watch {
	return &watch{subject: subject{p}, seen: seen{sdk.NewWindow(max(windowSpan, t.lasting)), t.lasting}, tunlet: t}
}

// sleep wants the samples that may matter: from one level of each condition that
// the process can meet on. What was seen until now is forgotten.
func (w *watch) sleep(h *sdk.Host) {
	w.window.Reset()
	w.counted, w.answered, w.pairs, w.details = nil, nil, nil, details{}
	if w.state != quiet {
		h.Want(w.handle(), w.looks.Until(h.Now(), sdk.NoSamples()))
		return
	}
	h.Want(w.handle(), sdk.Awaited(w.tunlet.description.Wake, w.process))
}

// take keeps a sample; false: it is not newer than the last.
func (w *watch) take(s sdk.Sample) bool {
	if !s.At.After(w.heard) {
		return false
	}
	w.heard = s.At
	w.window.Add(s)
	w.details.take(s)
	return true
}

// look goes on with a process of which there is a new sample.
func (w *watch) look(h *sdk.Host) {
	waited := h.Now().Sub(w.since)
	switch w.state {
	case quiet:
		w.lookForSymptom(h)
	case asked:
		if waited > answer && w.kept {
			w.endLook(h)
		} else if waited > answer {
			w.rest(h)
		}
	case judging, proposed, looking:
		w.goOn(h)
	case done:
		if w.looks.Due(h.Now()) {
			w.ask(h)
		}
	}
}

// goOn reports the objective and decides. Points that count are told of by
// aggregates, and the rest with them; where there are none, samples set the pace.
func (w *watch) goOn(h *sdk.Host) {
	switch {
	case w.details.refusal == "":
	case w.kept:
		w.endLook(h)
		return
	default:
		h.Remark(w.handle(), "the symptom is there, but not enough can be seen of it: %s", w.details.refusal)
		w.giveUp(h)
		return
	}
	if w.pairsOnly() {
		passed := w.latest().Duration()
		w.count(h, w.heard.Add(-passed), w.pairs.drain(passed.Seconds()))
	}
	used := w.tunlet.objective.details()
	if !w.tunlet.objective.uses(namePoint) && (len(used) == 0 || w.details.news(used)) {
		w.report(h, w.round())
	}
	w.decide(h)
}

// pairsOnly says that there are points, and that no aggregates come of those that
// are in place.
func (w *watch) pairsOnly() bool {
	for _, p := range w.tunlet.points {
		if p.until == nil && w.answered[p.id] {
			return false
		}
	}
	return len(w.tunlet.points) > 0
}

func (w *watch) lookForSymptom(h *sdk.Host) {
	if h.Now().Before(w.until) {
		return
	}
	span, long := w.span()
	if !long {
		return
	}
	k := w.knows(span, nil)
	w.explain(h, "symptom", &w.tunlet.symptom, k)
	if w.tunlet.symptom.holds(k) {
		w.ask(h)
	}
}

// idle says that there is no symptom, and that no condition of waking has held for a
// while.
func (w *watch) idle(now time.Time) bool {
	if w.state != quiet || now.Before(w.until) {
		return false
	}
	span := w.window.Latest(windowSpan)
	if span.Duration() < windowSpan*9/10 {
		return false
	}
	for _, c := range w.tunlet.description.Wake {
		if len(c.Levels) == 0 || w.reached(span, c.Levels[0]) {
			return false
		}
	}
	return true
}

// ask asks for points and details; where there are no points, there is nothing to
// wait for.
func (w *watch) ask(h *sdk.Host) {
	w.counted, w.reported = counts{}, 0
	w.details, w.pairs = details{}, newPairs(w.tunlet.points)
	if kinds := w.tunlet.needs(w.kept); len(kinds) > 0 {
		h.WantDetails(w.handle(), kinds...)
	}
	w.answered = map[string]bool{}
	w.enter(asked, h.Now())
	for id, spec := range w.tunlet.asks(w.kept) {
		spec.ID, spec.Processes = w.point(id), []sdk.Handle{w.handle()}
		h.AddPoint(spec)
	}
	w.measure(h)
}

// measure goes on when all points have been answered.
func (w *watch) measure(h *sdk.Host) {
	switch {
	case w.state != asked || len(w.answered) < len(maps.Collect(w.tunlet.asks(w.kept))):
	case w.kept:
		w.enter(looking, h.Now())
	default:
		w.enter(judging, h.Now())
	}
}

// placed hears of a point. Without any one of them that is not optional nothing
// can be judged.
func (w *watch) placed(h *sdk.Host, c sdk.PointChange) {
	id := w.pointOf(c.Point)
	name, _ := strings.CutSuffix(id, endSuffix)
	if p := w.pairs[name]; p != nil && !c.Placed {
		p.unknown = true
	}
	switch {
	case w.state == quiet || w.state == done || c.Removed || c.Off:
	case c.Placed || w.tunlet.optional(name):
		w.answered[id] = c.Placed
		w.measure(h)
	case w.kept:
		w.endLook(h)
	default:
		h.Remark(w.handle(), "the symptom is there, but %s cannot be watched: %s", name, c.Reason)
		w.giveUp(h)
	}
}

// count takes what points counted over one interval. One that began before all
// of them were in place tells nothing.
func (w *watch) count(h *sdk.Host, from time.Time, c counts) {
	if !w.active() || w.state == asked || from.Before(w.since) && w.state != proposed {
		return
	}
	w.counted.join(c)
	if w.tunlet.objective.uses(namePoint) {
		w.report(h, w.knows(w.latest(), c))
		w.decide(h)
	}
}

// round is what is known of that time.
func (w *watch) round() knowledge { return w.knows(w.latest(), nil) }

// report reports the objective.
func (w *watch) report(h *sdk.Host, k knowledge) {
	w.explain(h, "objective", &w.tunlet.objective, k)
	if v, ok := w.tunlet.objective.number(k); ok {
		h.Objective(w.handle().Scope(), v)
		w.reported++
		w.looks.Reported()
	}
}

// decide proposes, gives up or waits, once there is a baseline; it ends a look at what was
// kept.
func (w *watch) decide(h *sdk.Host) {
	if w.state == looking && w.looks.Over(h.Now()) {
		w.endLook(h)
	}
	if w.state != judging {
		return
	}
	span, long := w.span()
	k := w.knows(span, w.counted)
	waited := h.Now().Sub(w.since)
	w.explain(h, "symptom", &w.tunlet.symptom, k)
	w.explain(h, "confirm", &w.tunlet.confirm, k)
	w.explain(h, "gain", &w.tunlet.gain, k)
	switch d := w.tunlet.Definition; {
	case w.reported >= baseline && long && d.symptom.holds(k) && (!d.confirm.given() || d.confirm.holds(k)):
		w.propose(h, k)
	case waited >= patience && w.reported >= baseline && !w.details.unread(w.tunlet.details), waited >= lastPatience:
		h.Explain(w.handle(), "looks away for a while: in %v symptom and confirm never held at one time, with %d of the %d values of the objective that are needed",
			waited.Round(time.Millisecond), min(w.reported, baseline), baseline)
		w.rest(h)
	}
}
