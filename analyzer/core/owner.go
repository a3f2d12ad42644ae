// SPDX-License-Identifier: Apache-2.0

package core

import (
	"maps"
	"slices"
	"strings"
)

// owners says which proposal has which knob. Places of a knob belong to whom took
// them, each for itself; who has the knob as a whole has all of them.
type owners struct {
	of     map[knob]*proposal
	places map[knob]map[knob]bool // of a whole knob, those that belong to somebody
}

func newOwners() *owners {
	return &owners{of: map[knob]*proposal{}, places: map[knob]map[knob]bool{}}
}

// take gives k to p.
func (o *owners) take(k knob, p *proposal) {
	o.of[k] = p
	if whole := k.whole(); whole != k {
		if o.places[whole] == nil {
			o.places[whole] = map[knob]bool{}
		}
		o.places[whole][k] = true
	}
}

// assign gives p all knobs that it changes.
func (o *owners) assign(p *proposal) {
	for _, ch := range p.changes {
		o.take(ch.knob(), p)
	}
}

// free takes k from whoever has it.
func (o *owners) free(k knob) {
	delete(o.of, k)
	whole := k.whole()
	delete(o.places[whole], k)
	if len(o.places[whole]) == 0 {
		delete(o.places, whole)
	}
}

// release takes k from p, if p has it.
func (o *owners) release(k knob, p *proposal) {
	if o.of[k] == p {
		o.free(k)
	}
}

// among lists those who have k or a part of it, or what it is a part of, in the
// order of the names of what they have.
func (o *owners) among(k knob) (list []*proposal) {
	keys := []knob{k}
	switch whole := k.whole(); {
	case whole != k:
		keys = append(keys, whole)
	case len(o.places[k]) > 0:
		keys = slices.AppendSeq(keys, maps.Keys(o.places[k]))
		slices.SortFunc(keys, func(a, b knob) int { return strings.Compare(a.name, b.name) })
	}
	for _, key := range keys {
		if p := o.of[key]; p != nil && !slices.Contains(list, p) {
			list = append(list, p)
		}
	}
	return list
}
