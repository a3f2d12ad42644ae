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
	err := a.watches.watchAll(spec)
	if err == nil {
		err = a.link(p)
	}
	if err != nil {
		a.watches.unwatchAll(spec)
		a.watches.undefine(spec.Point)
		a.detachProbes(p)
		return nil, err
	}
	if p.records = spec.Delivery != attunev1.Delivery_DELIVERY_AGGREGATE; p.records {
		a.records.begin()
	}
	return p, nil
}

// watchAll begins the spec's watches.
func (t *watchTable) watchAll(spec Spec) error {
	for _, w := range spec.Watches {
		w.Point = spec.Point
		if err := t.Watch(w); err != nil {
			return err
		}
	}
	return nil
}

// unwatchAll ends them. What fails has not begun.
func (t *watchTable) unwatchAll(spec Spec) {
	for _, w := range spec.Watches {
		_ = t.UnwatchProcess(w.PID, spec.Point)
	}
}
