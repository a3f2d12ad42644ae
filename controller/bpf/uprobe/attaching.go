// SPDX-License-Identifier: Apache-2.0

package uprobe

import attunev1 "github.com/attune-hpc/attune/proto/attune/v1"

// attach puts a point into a file. The caller holds mu, and has what is needed
// loaded.
func (a *attacher) attach(spec Spec, target *target, narrow bool) (*attached, error) {
	if err := a.watches.define(spec.Point, spec.config()); err != nil {
		return nil, err
	}
	p := &attached{spec: spec, target: target, narrow: narrow, holders: map[int]*holder{spec.PID: {users: 1}}, symbols: examine(spec, target, a.programs.kernel, a.prices)}
	begun, err := a.watches.watchAll(spec)
	if err == nil {
		err = a.link(p)
	}
	if err != nil {
		a.watches.unwatchAll(begun)
		a.watches.undefine(spec.Point)
		a.detachProbes(p)
		return nil, err
	}
	if p.records = spec.Delivery != attunev1.Delivery_DELIVERY_AGGREGATE; p.records {
		a.records.begin()
	}
	return p, nil
}

// watchAll begins the spec's watches and returns those that there were not before, by
// another file of the point. It does so after an error too, which ends it.
func (t *watchTable) watchAll(spec Spec) (begun []Watch, err error) {
	for _, w := range spec.Watches {
		w.Point = spec.Point
		began, err := t.begin(w)
		if err != nil {
			return begun, err
		}
		if began {
			begun = append(begun, w)
		}
	}
	return begun, nil
}

// unwatchAll ends what watchAll has begun.
func (t *watchTable) unwatchAll(begun []Watch) {
	for _, w := range begun {
		_ = t.UnwatchProcess(w.PID, w.Point) // the kernel's map has it
	}
}
