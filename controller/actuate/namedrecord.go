// SPDX-License-Identifier: Apache-2.0

package actuate

import (
	"context"
	"errors"
	"fmt"
	"slices"
)

// Named is a named setting that calls have changed, for the journal: the same
// callKind give it back, made by a stopped thread where its controller is dead.
type Named struct {
	// Setting by its name, and what it was given.
	Setting string `json:"setting"`
	New     int64  `json:"new"`
	// Values that it consists of.
	Values []NamedValue `json:"values"`

	found *kept // nil: of a controller that is dead
}

// NamedValue is one of them.
type NamedValue struct {
	// Name that the library knows it by.
	Name string `json:"name"`
	Old  int64  `json:"old"`
}

// undo is that of a change that gives the values a new one.
func (k kept) undo(r *settingRequest) *Named {
	n := &Named{Setting: r.setting.Name, New: r.value, found: &k}
	for _, v := range k.values {
		n.Values = append(n.Values, NamedValue{Name: v.name, Old: v.old})
	}
	return n
}

func (*Named) kind() string { return "named" }

// takeBack gives back what the calls of a change have changed.
func (n *Named) takeBack(ctx context.Context, in changed) error {
	if n.found != nil {
		return n.found.giveBack(ctx, n.New)
	}
	if !in.process.Alive() {
		return nil
	}
	setting, ok := LookupSetting(n.Setting)
	m := valuedOf(setting.method)
	if !ok || m == nil {
		return fmt.Errorf("setting %s: not known to this version", n.Setting)
	}
	k, err := m.find(ctx, &settingRequest{process: in.process, setting: setting})
	if errors.Is(err, errAbsent) {
		return nil // the library is gone, or the process has another image by now
	}
	if err != nil {
		return err
	}
	k.values = slices.DeleteFunc(k.values, func(v value) bool { return n.find(v.name) == nil })
	for i, v := range k.values {
		k.values[i].old = n.find(v.name).Old
	}
	return k.giveBack(ctx, n.New)
}

func (n *Named) overlaps(other undo, sameProcess bool) bool {
	o, ok := other.(*Named)
	return ok && sameProcess && n.Setting == o.Setting
}

func (*Named) about(changed) about { return about{keeps: true} }

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
