// SPDX-License-Identifier: Apache-2.0

package actuate

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/attune-hpc/attune/internal/objfile"
	"github.com/attune-hpc/attune/internal/procid"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// errNeedsCall says that a setting needs calls inside the process.
var errNeedsCall = fmt.Errorf("%w: it is changed by a call, which needs DMLib in the process", ErrRefused)

// library makes calls of a library's functions inside a process, at safe
// points where its thread could call the allocator.
type library struct {
	mailbox caller
	at      *attunev1.SafePoint
	thread  int
}

// caller is a Mailbox, or a place that its calls are made at.
type caller interface {
	Call(ctx context.Context, call Call) (result uint64, where string, err error)
}

// open says whether calls can be made in the process at all.
func (r *settingRequest) open(thread int) (library, error) {
	if r.at.GetKind() == attunev1.SafePoint_KIND_NOW {
		return library{}, fmt.Errorf("%w: %s is changed by a call, which at an arbitrary place can deadlock; use safe point \"next hook\"",
			ErrRefused, r.setting.Name)
	}
	mailbox := r.process.Mailbox()
	if mailbox == nil {
		return library{}, errNeedsCall
	}
	return library{mailbox: mailbox, at: r.at, thread: thread}, nil
}

func (l library) call(ctx context.Context, function uint64, arguments ...uint64) (uint64, string, error) {
	ctx, cancel := safePointContext(ctx, l.at)
	defer cancel()
	return l.mailbox.Call(ctx, Call{
		Function: function, Arguments: arguments, Families: l.at.GetFamilies(), Thread: l.thread,
	})
}

// value is one value that a library keeps and that calls read and change. The
// page is there for what calls take by reference.
type value struct {
	// name for messages.
	name string
	get  func(ctx context.Context, page scratch) (int64, error)
	set  func(ctx context.Context, page scratch, value int64) (where string, err error)
	old  int64
}

// planValues plans to give all of the values the one that is asked for. They
// have been read; the first is the one that is answered with. Undoing gives
// back what each was, but leaves what somebody else has changed since.
func planValues(r *settingRequest, do withPage, values []value) *plan {
	return &plan{
		old: integer(values[0].old), way: WayMailbox,
		unchanged: !slices.ContainsFunc(values, func(v value) bool { return v.old != r.value }),
		run: func(ctx context.Context) (how done, err error) {
			err = do(ctx, func(page scratch) error {
				for _, v := range values {
					if how.where, err = v.set(ctx, page, r.value); err != nil {
						return fmt.Errorf("%s: %w", v.name, err)
					}
				}
				return nil
			})
			return how, err
		},
		read: func() (*attunev1.Value, error) {
			ctx := context.Background()
			return integer(r.value), do(ctx, func(page scratch) error { return checkValues(ctx, page, r.value, values) })
		},
		undo: func(ctx context.Context) error {
			return do(ctx, func(page scratch) error {
				var errs []error
				for _, v := range values {
					errs = append(errs, v.giveBack(ctx, page, r.value))
				}
				return errors.Join(errs...)
			})
		},
	}
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

func (v value) giveBack(ctx context.Context, page scratch, changed int64) error {
	now, err := v.get(ctx, page)
	switch {
	case err != nil:
		return fmt.Errorf("%s: %w", v.name, err)
	case now == v.old:
		return nil
	case now != changed:
		return fmt.Errorf("%s is %d: %w", v.name, now, ErrChangedByOthers)
	}
	if _, err := v.set(ctx, page, v.old); err != nil {
		return fmt.Errorf("%s: %w", v.name, err)
	}
	return nil
}

// functions is a setting with a function to set it and one to get it, int both,
// that belong to the thread that calls them: the program's first one.
type functions struct{ set, get string }

func (m functions) plan(ctx context.Context, r *settingRequest) (*plan, error) {
	set, err := single(r.process, m.set)
	if err != nil {
		return nil, err
	}
	get, err := set.Image.Symbol(m.get, objfile.Function)
	if err != nil {
		return nil, fmt.Errorf("%s has %s without %s: %w", set.Image.Name(), m.set, m.get, err)
	}
	thread, err := procid.InnerID(r.process.PID(), r.process.PID())
	if err != nil {
		return nil, err
	}
	l, err := r.open(thread)
	if err != nil {
		return nil, err
	}
	v := value{
		name: m.get,
		get: func(ctx context.Context, _ scratch) (int64, error) {
			now, _, err := l.call(ctx, set.Image.Address(get.Value))
			return int64(int32(now)), err
		},
		set: func(ctx context.Context, _ scratch, value int64) (string, error) {
			_, where, err := l.call(ctx, set.Address, uint64(value))
			return where, err
		},
	}
	if v.old, err = v.get(ctx, scratch{}); err != nil {
		return nil, err
	}
	return planValues(r, withoutPage, []value{v}), nil
}

// single finds the function in the only object that has it.
func single(process Process, function string) (found objfile.Resolved, err error) {
	images, err := process.Images()
	if err != nil {
		return found, fmt.Errorf("mappings of process %d: %w", process.PID(), err)
	}
	for _, image := range images {
		symbol, err := image.Symbol(function, objfile.Function)
		switch {
		case err != nil:
			continue
		case found.Address != 0:
			return found, fmt.Errorf("both %s and %s have %s", found.Image.Name(), image.Name(), function)
		}
		found = objfile.Resolved{Address: image.Address(symbol.Value), Symbol: symbol, Image: image}
	}
	if found.Address == 0 {
		return found, fmt.Errorf("%w: no object of process %d has %s", errAbsent, process.PID(), function)
	}
	return found, nil
}
