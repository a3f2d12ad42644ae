// SPDX-License-Identifier: Apache-2.0

package setting

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/attune-hpc/attune/controller/actuate"
	"github.com/attune-hpc/attune/controller/actuate/access"
)

// calledSetting is a named setting that calls have changed, for the journal: the same
// calls give it back, made by a stopped thread where its controller is dead.
type calledSetting struct {
	// Setting by its name, and what it was given.
	Setting string `json:"setting"`
	New     int64  `json:"new"`
	// Where is the library, for people.
	Where string `json:"where,omitempty"`
	// Values that it consists of, that of the whole first.
	Values []calledValue `json:"values"`

	found *kept // nil: of a controller that is dead
}

// calledValue is one of them.
type calledValue struct {
	// Name that the library knows it by.
	Name string `json:"name"`
	Old  int64  `json:"old"`
}

// undo is that of a change that gives the values a new one.
func (k kept) undo(r *settingRequest) *calledSetting {
	n := &calledSetting{Setting: r.setting.Name, New: r.value, Where: k.where, found: &k}
	for _, v := range k.values {
		n.Values = append(n.Values, calledValue{Name: v.name, Old: v.old})
	}
	return n
}

func (*calledSetting) Kind() string { return "named" }

// TakeBack gives back what the calls of a change have changed. What a later change has set is
// left to that change, which then gives back what was there before both.
func (n *calledSetting) TakeBack(ctx context.Context, in actuate.Changed) error {
	if err := n.passOn(in); err != nil {
		return err
	}
	later := func(now int64) bool { return n.laterSet(in, now) }
	if n.found != nil {
		return n.found.giveBack(ctx, n, later)
	}
	if !in.Process.Alive() {
		return nil
	}
	setting, ok := Lookup(n.Setting)
	m := valuedOf(setting.method)
	if !ok || m == nil || len(n.Values) == 0 {
		return fmt.Errorf("setting %s: not known to this version", n.Setting)
	}
	k, err := m.find(ctx, &settingRequest{Request: &actuate.Request{Process: in.Process}, setting: setting})
	if errors.Is(err, access.ErrAbsent) {
		return nil // the library is gone, or the process has another image by now
	}
	if err != nil {
		return err
	}
	return k.giveBack(ctx, n, later)
}

// InFork implements [copied] of package actuate: the library is looked for anew.
func (n *calledSetting) InFork() actuate.Undo {
	in := *n
	in.found = nil
	return &in
}

// passOn has the next change in force, if it was made on top of this one, give back what was
// there before both.
func (n *calledSetting) passOn(in actuate.Changed) error {
	passed := false
	return in.AmendLater(n.Overlaps, func(later actuate.Undo, sameProcess bool) actuate.Undo {
		if passed || !n.Overlaps(later, sameProcess) {
			return later
		}
		passed = true
		return cmp.Or(later.(*calledSetting).Onto(n, sameProcess), later)
	})
}

// laterSet says whether a later change in force has set the value that there is now.
func (n *calledSetting) laterSet(in actuate.Changed, now int64) bool {
	return in.LaterHas(func(later actuate.Undo, sameProcess bool) bool {
		return n.Overlaps(later, sameProcess) && later.(*calledSetting).New == now
	})
}

// Onto implements [stacked] of package actuate.
func (n *calledSetting) Onto(below actuate.Undo, sameProcess bool) actuate.Undo {
	b, ok := below.(*calledSetting)
	if !ok || !b.Overlaps(n, sameProcess) {
		return nil
	}
	above := *n
	above.Values = slices.Clone(n.Values)
	for i, v := range above.Values {
		if v.Old == b.New {
			above.Values[i].Old = b.old(v.Name)
		}
	}
	if slices.Equal(above.Values, n.Values) {
		return nil
	}
	return &above
}

func (n *calledSetting) Overlaps(other actuate.Undo, sameProcess bool) bool {
	o, ok := other.(*calledSetting)
	return ok && sameProcess && n.Setting == o.Setting
}

func (n *calledSetting) About(actuate.Changed) actuate.About {
	told := actuate.Told{Where: n.Where, New: strconv.FormatInt(n.New, 10)}
	if len(n.Values) > 0 {
		told.Old = strconv.FormatInt(n.Values[0].Old, 10)
	}
	return actuate.About{Told: told, Keeps: true}
}

// old is what a value was; of a part that began later, what the whole was.
func (n *calledSetting) old(name string) int64 {
	at := slices.IndexFunc(n.Values, func(v calledValue) bool { return v.Name == name })
	return n.Values[max(at, 0)].Old
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
