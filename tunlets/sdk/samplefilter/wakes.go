// SPDX-License-Identifier: Apache-2.0

package samplefilter

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/attune-hpc/attune/proto/attune/series"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// Wakes watches for the conditions under which sleeping tunlets are of use. The
// zero value has none. Not safe for use by several goroutines.
type Wakes struct {
	sleepers  []*sleeper
	processes map[uint64]*seen
}

// seen is what was seen of a process.
type seen struct {
	objects []string         // base names of what it has mapped
	last    *attunev1.Sample // nil: none yet
	at      int64            // when it was taken, Unix time in nanoseconds
}

// sleeper is a tunlet that sleeps.
type sleeper struct {
	tunlet     string
	conditions []*condition
}

// condition is one of those that wake a tunlet.
type condition struct {
	wake  *attunev1.Wake
	maps  map[uint64]bool  // processes that have mapped the object
	since map[uint64]int64 // processes in which it holds, and since when
	spans map[uint64]span  // of an averaged one: what it is compared with
	looks map[uint64]int64 // processes in which a detail is looked for, and since when
	rests map[uint64]int64 // processes without it, and until when it is not looked for
}

const (
	// lookFor is how long a detail is looked for: some rounds of samples.
	lookFor = int64(2 * time.Second)
	// restFor is between two looks of which the first has found nothing.
	restFor = int64(5 * time.Second)
)

// span is a sample with which a later one is compared.
type span struct {
	from *attunev1.Sample
	at   int64
}

// Woken tells of a tunlet that is of use now.
type Woken struct {
	// Tunlet is its name.
	Tunlet string
	// Process in which a condition holds.
	Process uint64
	// Reason says which, for people.
	Reason string
}

// Add has a tunlet sleep until one of the conditions holds.
func (w *Wakes) Add(tunlet string, conditions []*attunev1.Wake) {
	w.Remove(tunlet)
	s := &sleeper{tunlet: tunlet}
	for _, c := range conditions {
		s.conditions = append(s.conditions, &condition{
			wake: c, maps: make(map[uint64]bool), since: make(map[uint64]int64), spans: make(map[uint64]span),
			looks: make(map[uint64]int64), rests: make(map[uint64]int64),
		})
	}
	for id, p := range w.processes {
		s.look(id, p.objects)
	}
	w.sleepers = append(w.sleepers, s)
}

// Remove forgets a tunlet.
func (w *Wakes) Remove(tunlet string) {
	w.sleepers = slices.DeleteFunc(w.sleepers, func(s *sleeper) bool { return s.tunlet == tunlet })
}

// Empty reports whether no tunlet sleeps.
func (w *Wakes) Empty() bool { return len(w.sleepers) == 0 }

// Expects reports whether a process has mapped an object that a tunlet sleeps for, so
// that it is likelier than others to wake one, and may do so within a time.
func (w *Wakes) Expects(within time.Duration) bool {
	return slices.ContainsFunc(w.sleepers, func(s *sleeper) bool {
		return slices.ContainsFunc(s.conditions, func(c *condition) bool {
			return len(c.maps) > 0 && c.wake.GetLastingNanos() < int64(within)
		})
	})
}

// Process makes a process known, or tells anew what it has mapped: paths.
// Samples of unknown processes wake nobody.
func (w *Wakes) Process(id uint64, objects []string) {
	if w.processes == nil {
		w.processes = make(map[uint64]*seen)
	}
	p := w.processes[id]
	if p == nil {
		p = &seen{}
		w.processes[id] = p
	}
	p.objects = p.objects[:0]
	for _, o := range objects {
		p.objects = append(p.objects, path.Base(o))
	}
	for _, s := range w.sleepers {
		s.look(id, p.objects)
	}
}

// Forget forgets a process.
func (w *Wakes) Forget(id uint64) {
	delete(w.processes, id)
	for _, s := range w.sleepers {
		for _, c := range s.conditions {
			delete(c.maps, id)
			delete(c.since, id)
			delete(c.spans, id)
			delete(c.looks, id)
			delete(c.rests, id)
		}
	}
}

// Details returns which details of a process are to be read, some perhaps more than
// once. It is for after each Round.
func (w *Wakes) Details(id uint64) (kinds []uint32) {
	for _, s := range w.sleepers {
		for _, c := range s.conditions {
			if _, looks := c.looks[id]; looks {
				kinds = append(kinds, c.wake.GetTable())
			}
		}
	}
	return kinds
}

// look notes whether a process has mapped what the conditions are about.
func (s *sleeper) look(id uint64, objects []string) {
	for _, c := range s.conditions {
		if c.wake.GetObject() == "" {
			continue
		}
		delete(c.maps, id)
		if slices.ContainsFunc(objects, func(name string) bool {
			ok, err := path.Match(c.wake.GetObject(), name)
			return ok && err == nil
		}) {
			c.maps[id] = true
		}
	}
}

// Round takes a round of samples. It returns the tunlets that are of use now,
// which do not sleep any more, and the last samples of all processes before the
// round, in the order of their times: what makes sense of the first ones that
// the tunlets will get.
func (w *Wakes) Round(round *attunev1.SampleBatch) (woken []Woken, before []*attunev1.SampleBatch) {
	if w.Empty() {
		return nil, nil
	}
	w.sleepers = slices.DeleteFunc(w.sleepers, func(s *sleeper) bool {
		by, ok := s.round(w.processes, round)
		if ok {
			woken = append(woken, by)
		}
		return ok
	})
	for _, sample := range round.GetSamples() {
		p := w.processes[sample.GetProcess()]
		if p == nil {
			continue
		}
		if len(woken) > 0 && p.last != nil {
			before = earlier(before, p.last, p.at)
		}
		p.last, p.at = sample, round.GetUnixNano()
	}
	return woken, before
}

// round looks for a process in which one of the conditions holds.
func (s *sleeper) round(processes map[uint64]*seen, round *attunev1.SampleBatch) (by Woken, ok bool) {
	for _, sample := range round.GetSamples() {
		p := processes[sample.GetProcess()]
		if p == nil {
			continue
		}
		for _, c := range s.conditions {
			if c.holds(p, sample, round.GetUnixNano()) {
				return Woken{Tunlet: s.tunlet, Process: sample.GetProcess(), Reason: Text(c.wake)}, true
			}
		}
	}
	return Woken{}, false
}

// holds reports whether the condition holds in a process.
func (c *condition) holds(p *seen, sample *attunev1.Sample, at int64) bool {
	held := c.hasHeld(p, sample, at)
	if c.wake.GetTable() == 0 {
		return held
	}
	id := sample.GetProcess()
	since, looking := c.looks[id]
	if !looking && held && at >= c.rests[id] {
		c.looks[id], since, looking = at, at, true
	}
	if !looking {
		return false
	}
	has, read := hasOne(c.wake.GetTable(), sample)
	switch {
	case has:
		return true
	case read:
		c.rests[id] = at + restFor
		delete(c.looks, id)
	case at-since > lookFor:
		delete(c.looks, id)
	}
	return false
}

// hasHeld reports whether all but the detail has been so for long enough. What a
// counter's rise shows has been so since the sample before.
func (c *condition) hasHeld(p *seen, sample *attunev1.Sample, at int64) bool {
	if c.wake.GetAveraged() {
		return c.holdsOnAverage(p, sample, at)
	}
	id := sample.GetProcess()
	began := at
	met := c.wake.GetObject() == "" || c.maps[id]
	for _, l := range c.wake.GetLevels() {
		met = met && reaches(l, p.last, p.at, sample, at)
		if !series.ID(l.GetSeries()).Gauge() {
			began = p.at
		}
	}
	if !met {
		delete(c.since, id)
		return false
	}
	if since, ok := c.since[id]; ok {
		began = since
	} else {
		c.since[id] = began
	}
	return at-began >= c.wake.GetLastingNanos()
}

// holdsOnAverage is holds where the levels are those of the time asked for as a
// whole. One such time follows on the other.
func (c *condition) holdsOnAverage(p *seen, sample *attunev1.Sample, at int64) bool {
	id := sample.GetProcess()
	s, known := c.spans[id]
	if !known {
		s = span{p.last, p.at}
		if s.from == nil {
			s = span{sample, at}
		}
		c.spans[id] = s
	}
	if at-s.at < c.wake.GetLastingNanos() || at == s.at {
		return false
	}
	met := c.wake.GetObject() == "" || c.maps[id]
	for _, l := range c.wake.GetLevels() {
		met = met && reaches(l, s.from, s.at, sample, at)
	}
	c.spans[id] = span{sample, at}
	return met
}

// Text says in words what a process must have for a condition to hold, e.g.
// "libmpi.so* and runqueue_wait of at least 100ms per second, for 200ms".
func Text(w *attunev1.Wake) string {
	var parts []string
	if w.GetObject() != "" {
		parts = append(parts, w.GetObject())
	}
	for _, l := range w.GetLevels() {
		parts = append(parts, levelText(l))
	}
	text := cmp.Or(strings.Join(parts, " and "), "anything")
	if lasting := time.Duration(w.GetLastingNanos()); lasting > 0 {
		over := "for"
		if w.GetAveraged() {
			over = "on average of"
		}
		text += fmt.Sprintf(", %s %v", over, lasting)
	}
	if table := series.TableID(w.GetTable()); table != 0 {
		text += fmt.Sprintf(", with %v", table)
	}
	return text
}

func levelText(l *attunev1.Level) string {
	signal := series.ID(l.GetSeries())
	text := fmt.Sprintf("%v of at least ", signal)
	if of := series.ID(l.GetOf()); of != 0 {
		return text + fmt.Sprintf("%.3g times its %v", l.GetAtLeast(), of)
	}
	if unit := signal.Series().Unit.Time(); unit > 0 {
		text += (time.Duration(l.GetAtLeast()) * unit).String()
	} else {
		text += fmt.Sprintf("%g", l.GetAtLeast())
	}
	if !signal.Gauge() {
		text += " per second"
	}
	return text
}
