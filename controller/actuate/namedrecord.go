// SPDX-License-Identifier: Apache-2.0

package actuate

import (
	"context"
	"errors"
	"fmt"
	"slices"
)

// Named is a named setting that calls have changed, for the journal: the same
// calls give it back, made by a stopped thread where its controller is dead.
type Named struct {
	// Setting by its name, and what it was given.
	Setting string `json:"setting"`
	New     int64  `json:"new"`
	// Values that it consists of.
	Values []NamedValue `json:"values"`
}

// NamedValue is one of them.
type NamedValue struct {
	// Name that the library knows it by.
	Name string `json:"name"`
	Old  int64  `json:"old"`
}

// record is what the journal keeps of a change that gives the values a new one.
func (k kept) record(r *settingRequest) *Named {
	n := &Named{Setting: r.setting.Name, New: r.value}
	for _, v := range k.values {
		n.Values = append(n.Values, NamedValue{Name: v.name, Old: v.old})
	}
	return n
}

// restoreNamed gives back what the calls of a change have changed.
func restoreNamed(r record) error {
	if ended(r) {
		return nil
	}
	setting, ok := LookupSetting(r.Named.Setting)
	m := valuedOf(setting.method)
	if !ok || m == nil {
		return fmt.Errorf("setting %s: not known to this version", r.Named.Setting)
	}
	ctx := context.Background()
	k, err := m.find(ctx, &settingRequest{process: &journaled{identity: *r.Process}, setting: setting})
	if errors.Is(err, errAbsent) {
		return nil // the library is gone, or the process has another image by now
	}
	if err != nil {
		return err
	}
	k.values = slices.DeleteFunc(k.values, func(v value) bool { return r.Named.find(v.name) == nil })
	for i, v := range k.values {
		k.values[i].old = r.Named.find(v.name).Old
	}
	return k.giveBack(ctx, r.Named.New)
}

func (n *Named) find(name string) *NamedValue {
	at := slices.IndexFunc(n.Values, func(v NamedValue) bool { return v.Name == name })
	if at < 0 {
		return nil
	}
	return &n.Values[at]
}

// valuedOf is the way of a method that is calls; nil: there is none.
func valuedOf(m method) valued {
	switch m := m.(type) {
	case byCalls:
		return m.valued
	case sharesWork:
		return valuedOf(m.method)
	case firstOf:
		for _, way := range m {
			if v := valuedOf(way); v != nil {
				return v
			}
		}
	}
	return nil
}
