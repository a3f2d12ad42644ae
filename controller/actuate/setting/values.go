// SPDX-License-Identifier: Apache-2.0

package setting

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/attune-hpc/attune/controller/actuate"
	"github.com/attune-hpc/attune/controller/actuate/access"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// value is one value that a library keeps and that calls read and change. The
// page is there for what calls take by reference.
type value struct {
	// name for messages.
	name string
	get  func(ctx context.Context, page scratch) (int64, error)
	set  func(ctx context.Context, page scratch, value int64) (where string, err error)
	old  int64
}

// kept are the values that a setting consists of in a process, as they were
// when it was looked at: that of the whole first.
type kept struct {
	values []value
	// parts reads the values of parts, which begin with what the whole has; nil: there are
	// none.
	parts func(ctx context.Context, page scratch) ([]value, error)
	// do does something with a page for what calls take by reference.
	do  withPage
	way access.Way
	// where is the library, for people.
	where string
}

// valued is a setting that calls read and change.
type valued interface {
	// find finds and reads the values in a process.
	find(ctx context.Context, r *settingRequest) (kept, error)
}

// byCalls changes a setting by calls.
type byCalls struct{ valued }

func (m byCalls) plan(ctx context.Context, r *settingRequest) (*actuate.Plan, error) {
	k, err := m.find(ctx, r)
	if err != nil {
		return nil, err
	}
	return k.plan(r), nil
}

// plan plans to give all of the values the one that is asked for. The first is
// the one that is answered with. Undoing gives back what each was, but leaves
// what somebody else has changed since.
func (k kept) plan(r *settingRequest) *actuate.Plan {
	old := access.Integer(k.values[0].old)
	return &actuate.Plan{
		Old: old, Way: k.way, Undo: actuate.Undos{k.undo(r)},
		Told:      actuate.Told{Where: k.where, Old: attunev1.ValueText(old), New: attunev1.ValueText(access.Integer(r.value))},
		Unchanged: !slices.ContainsFunc(k.values, func(v value) bool { return v.old != r.value }),
		Run: func(ctx context.Context) (how access.Done, err error) {
			how.Way = k.way
			err = k.do(ctx, func(page scratch) error {
				for _, v := range k.values {
					if how.Where, err = v.set(ctx, page, r.value); err != nil {
						return fmt.Errorf("%s: %w", v.name, err)
					}
				}
				return nil
			})
			return how, err
		},
		Read: func() (*attunev1.Value, error) {
			ctx := context.Background()
			return access.Integer(r.value), k.do(ctx, func(page scratch) error { return checkValues(ctx, page, r.value, k.values) })
		},
	}
}

// read reads that of the whole, and finds those of its parts.
func (k *kept) read(ctx context.Context, page scratch) (err error) {
	if k.values[0].old, err = k.values[0].get(ctx, page); err != nil || k.parts == nil {
		return err
	}
	parts, err := k.parts(ctx, page)
	k.values = append(k.values, parts...)
	return err
}

// giveBack gives back what each value was that was given another one: that of the
// whole first, and then those of its parts, also of those that began meanwhile.
func (k kept) giveBack(ctx context.Context, n *calledSetting) error {
	return k.do(ctx, func(page scratch) error {
		err := k.values[0].giveBack(ctx, page, n)
		parts, unlisted := k.values[1:], error(nil)
		if k.parts != nil {
			parts, unlisted = k.parts(ctx, page)
		}
		for _, v := range parts {
			err = errors.Join(err, v.giveBack(ctx, page, n))
		}
		return errors.Join(err, unlisted)
	})
}

func checkValues(ctx context.Context, page scratch, want int64, values []value) error {
	for _, v := range values {
		now, err := v.get(ctx, page)
		if err != nil {
			return fmt.Errorf("read back %s: %w", v.name, err)
		}
		if now != want {
			return fmt.Errorf("%s reads back as %d instead of %d", v.name, now, want)
		}
	}
	return nil
}

func (v value) giveBack(ctx context.Context, page scratch, n *calledSetting) error {
	now, err := v.get(ctx, page)
	old := n.old(v.name)
	switch {
	case err != nil:
		return fmt.Errorf("%s: %w", v.name, err)
	case now == old:
		return nil
	case now != n.New:
		return fmt.Errorf("%s is %d: %w", v.name, now, access.ErrChangedByOthers)
	}
	if _, err := v.set(ctx, page, old); err != nil {
		return fmt.Errorf("%s: %w", v.name, err)
	}
	return nil
}

// calledSetting is a named setting that calls have changed, for the journal: the same
// calls give it back, made by a stopped thread where its controller is dead.
type calledSetting struct {
	// Setting by its name, and what it was given.
	Setting string `json:"setting"`
	New     int64  `json:"new"`
	// Values that it consists of.
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
	n := &calledSetting{Setting: r.setting.Name, New: r.value, found: &k}
	for _, v := range k.values {
		n.Values = append(n.Values, calledValue{Name: v.name, Old: v.old})
	}
	return n
}

func (*calledSetting) Kind() string { return "named" }

// TakeBack gives back what the calls of a change have changed.
func (n *calledSetting) TakeBack(ctx context.Context, in actuate.Changed) error {
	if n.found != nil {
		return n.found.giveBack(ctx, n)
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
	return k.giveBack(ctx, n)
}

func (n *calledSetting) Overlaps(other actuate.Undo, sameProcess bool) bool {
	o, ok := other.(*calledSetting)
	return ok && sameProcess && n.Setting == o.Setting
}

func (*calledSetting) About(actuate.Changed) actuate.About { return actuate.About{Keeps: true} }

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
