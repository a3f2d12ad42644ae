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
// later says whether a later change has made a value what it is now, which is left to that
// change.
func (k kept) giveBack(ctx context.Context, n *calledSetting, later func(now int64) bool) error {
	return k.do(ctx, func(page scratch) error {
		err := k.values[0].giveBack(ctx, page, n, later)
		parts, unlisted := k.values[1:], error(nil)
		if k.parts != nil {
			parts, unlisted = k.parts(ctx, page)
		}
		for _, v := range parts {
			err = errors.Join(err, v.giveBack(ctx, page, n, later))
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

func (v value) giveBack(ctx context.Context, page scratch, n *calledSetting, later func(now int64) bool) error {
	now, err := v.get(ctx, page)
	old := n.old(v.name)
	switch {
	case err != nil:
		return fmt.Errorf("%s: %w", v.name, err)
	case now == old, later(now):
		return nil
	case now != n.New:
		return fmt.Errorf("%s is %d: %w", v.name, now, access.ErrChangedByOthers)
	}
	if _, err := v.set(ctx, page, old); err != nil {
		return fmt.Errorf("%s: %w", v.name, err)
	}
	return nil
}
