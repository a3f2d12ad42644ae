// SPDX-License-Identifier: Apache-2.0

package searching

import (
	"fmt"

	"github.com/attune-hpc/attune/tunlets/kit/trials"
	"github.com/attune-hpc/attune/tunlets/sdk"
)

// site is the program as its search sees it.
type site struct{ *Tunlet }

// search begins the search in a program.
func (t *Tunlet) search(h *sdk.Host) *trials.Search {
	return trials.New(t.options(), site{t}, h.Now())
}

func (t *Tunlet) options() trials.Options {
	return trials.Options{
		Variable: t.program.Variable, Method: t.program.method, Tries: t.program.tries, Time: t.program.time, MinGain: minGain,
	}
}

// takeUp goes on where the tunlet was when it had kept a value, before it was started again:
// nothing more is tried, and the calls of the same process are counted.
func (t *Tunlet) takeUp(h *sdk.Host, p *sdk.Proposal) {
	t.count = max(t.count, p.Number())
	for _, c := range p.Changes {
		m := t.members[c.Process]
		if m == nil {
			continue
		}
		m.calls = true
		if p.Scope == c.Process.Scope() {
			t.lead, t.run = c.Process, trials.Resume(t.options(), site{t}, h.Now(), p.ID)
		}
	}
	site{t}.Kept(h)
}

// Propose sets the variable in all processes that call the function.
func (s site) Propose(h *sdk.Host, p sdk.Proposal, value float64) (id string) {
	s.count++
	p.ID, p.Scope = fmt.Sprintf("%s-%d", Name, s.count), s.lead.Scope()
	for _, handle := range s.handles() {
		m := s.members[handle]
		if !m.calls {
			continue
		}
		p.Changes = append(p.Changes, sdk.Change{Knob: knob, Process: handle, Action: s.program.Set(value)})
		if handle != s.lead { // all that there was to know
			m.unwatch(h, handle)
		}
	}
	h.Propose(p)
	return p.ID
}

// Measure has the calls of the lead counted, or not.
func (s site) Measure(h *sdk.Host, on bool) {
	if m := s.members[s.lead]; on {
		s.watch(h, s.lead, m)
	} else {
		m.unwatch(h, s.lead)
	}
}

// Kept counts the calls of the lead alone, by which the Analyzer goes on to judge.
func (s site) Kept(h *sdk.Host) {
	for _, p := range s.handles() {
		m := s.members[p]
		m.done = m.done || m.calls
		if p != s.lead {
			m.unwatch(h, p)
		}
	}
}

// Over gives the measure points back.
func (s site) Over(h *sdk.Host, why string) {
	if why != "" {
		h.Remark(s.lead, "%s", why)
	}
	for _, p := range s.handles() {
		s.members[p].unwatch(h, p)
	}
}
