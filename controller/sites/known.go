// SPDX-License-Identifier: Apache-2.0

package sites

import (
	"fmt"
	"slices"

	"github.com/attune-hpc/attune/controller/patch"
)

// function is a function with what is done at its entry and exits. Its [Sites] locks
// it.
type function struct {
	Function
	entry *spot
	exits []*spot // nil: not looked for yet
	tails bool    // some of them are jumps to other functions
	do    doing
}

// all places of a function that were prepared.
func (fn *function) all() (places []*spot) {
	places = slices.Clone(fn.exits)
	if fn.entry != nil {
		places = append(places, fn.entry)
	}
	return places
}

// spots are those at which something is done.
func (fn *function) spots(do doing) (used []*spot) {
	if do.any(false) {
		used = slices.Clone(fn.exits)
	}
	if do.any(true) {
		used = append(used, fn.entry)
	}
	return used
}

// waits says whether something should be done at a function that is not mapped.
func (fn *function) waits() bool {
	active := func(p *spot) bool { return p.active }
	return len(fn.spots(fn.do)) > 0 && !slices.ContainsFunc(fn.all(), active)
}

// known are the functions of a process that were asked for. Its [Sites] locks it.
type known map[place]*function

// at returns what is known of a function.
func (k known) at(f Function) *function {
	fn := k[placeOf(f)]
	if fn == nil {
		fn = &function{Function: f}
		k[placeOf(f)] = fn
	}
	return fn
}

// named finds the function of an action; nil if there is none.
func (k known) named(name string) *function {
	for _, fn := range k {
		if fn.do.has(name) {
			return fn
		}
	}
	return nil
}

// apart refuses a place whose patch would change another one's jump.
func (k known) apart(site patch.Site) error {
	for _, fn := range k {
		for _, other := range fn.all() {
			if other.active && other.site.Address != site.Address && other.site.Overlaps(site) {
				return fmt.Errorf("%w: another patch is %d bytes away", patch.ErrUnpatchable, int64(other.site.Address-site.Address))
			}
		}
	}
	return nil
}
