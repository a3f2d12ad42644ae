// SPDX-License-Identifier: Apache-2.0

package actuate

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/attune-hpc/attune/controller/inject"
	"github.com/attune-hpc/attune/internal/objfile"
	"github.com/attune-hpc/attune/internal/procid"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// errNeedsCall says that a way to change a setting is for processes with DMLib.
var errNeedsCall = fmt.Errorf("%w: that needs DMLib in the process", ErrRefused)

// library makes calls of a library's functions inside a process, where its
// thread could call the allocator.
type library struct {
	mailbox caller
	at      *attunev1.SafePoint
	thread  int // as the process sees its id; 0: any
	way     Way
}

// caller is a Mailbox, or a place that its calls are made at.
type caller interface {
	Call(ctx context.Context, call Call) (result uint64, where string, err error)
}

// stopped has a stopped thread of a process make calls. It belongs to one
// goroutine.
type stopped struct {
	process Process
	// malloc is where a thread is waited for, once it could not be told that one
	// stood where it may call the C library.
	malloc *objfile.Resolved
}

// Call makes a call where the thread could call the C library, or where it
// begins to allocate memory: then it holds none of the allocator's locks. The
// first is recognised with certainty only, which for some programs is never.
func (s *stopped) Call(ctx context.Context, call Call) (uint64, string, error) {
	i := invocation{function: call.Function, place: callPlace{thread: call.Thread, function: s.malloc}}
	for _, argument := range call.Arguments {
		i.arguments = append(i.arguments, unsigned(argument))
	}
	if s.malloc == nil {
		i.patience = searchPatience
	}
	result, how, err := i.byStop(ctx, s.process)
	if s.malloc != nil || !errors.Is(err, inject.ErrNoSafePoint) {
		return result, how.where, err
	}
	malloc, lookErr := allocatorOf(s.process)
	if lookErr != nil {
		return 0, "", err
	}
	s.malloc = &malloc
	i.patience, i.place.function = 0, s.malloc
	result, how, err = i.byStop(ctx, s.process)
	return result, how.where, err
}

// open says by which way calls are made in the process, if at all: by DMLib
// where it is there, else by a thread that is stopped for each.
func (r *settingRequest) open(thread int) (library, error) {
	if r.at.GetKind() == attunev1.SafePoint_KIND_NOW {
		return library{}, fmt.Errorf("%w: %s is changed by a call, which at an arbitrary place can deadlock; use safe point \"next hook\"",
			ErrRefused, r.setting.Name)
	}
	l := library{at: r.at, thread: thread}
	if mailbox := r.process.Mailbox(); mailbox != nil {
		l.mailbox, l.way = mailbox, WayMailbox
		return l, nil
	}
	if r.at.GetKind() == attunev1.SafePoint_KIND_NEXT_HOOK {
		return library{}, errNeedsCall
	}
	l.mailbox, l.way = &stopped{process: r.process}, WayStopped
	return l, nil
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

// kept are the values that a setting consists of in a process, as they were
// when it was looked at; never none.
type kept struct {
	values []value
	// do does something with a page for what calls take by reference.
	do  withPage
	way Way
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

func (m byCalls) plan(ctx context.Context, r *settingRequest) (*plan, error) {
	k, err := m.find(ctx, r)
	if err != nil {
		return nil, err
	}
	return k.plan(r), nil
}

// plan plans to give all of the values the one that is asked for. The first is
// the one that is answered with. Undoing gives back what each was, but leaves
// what somebody else has changed since.
func (k kept) plan(r *settingRequest) *plan {
	old := integer(k.values[0].old)
	return &plan{
		old: old, way: k.way, undo: undos{k.undo(r)},
		told:      told{Where: k.where, Old: attunev1.ValueText(old), New: attunev1.ValueText(integer(r.value))},
		unchanged: !slices.ContainsFunc(k.values, func(v value) bool { return v.old != r.value }),
		run: func(ctx context.Context) (how done, err error) {
			how.way = k.way
			err = k.do(ctx, func(page scratch) error {
				for _, v := range k.values {
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
			return integer(r.value), k.do(ctx, func(page scratch) error { return checkValues(ctx, page, r.value, k.values) })
		},
	}
}

// giveBack gives back what each value was.
func (k kept) giveBack(ctx context.Context, changed int64) error {
	return k.do(ctx, func(page scratch) error {
		var errs []error
		for _, v := range k.values {
			errs = append(errs, v.giveBack(ctx, page, changed))
		}
		return errors.Join(errs...)
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
type functions struct {
	set, get string
	// stopped has a stopped thread make the calls, also where DMLib is: the thread
	// may never come to one of its hooks.
	stopped bool
}

func (m functions) find(ctx context.Context, r *settingRequest) (kept, error) {
	set, err := single(r.process, m.set)
	if err != nil {
		return kept{}, err
	}
	get, err := set.Image.Symbol(m.get, objfile.Function)
	if err != nil {
		return kept{}, fmt.Errorf("%s has %s without %s: %w", set.Image.Name(), m.set, m.get, err)
	}
	thread, err := procid.InnerID(r.process.PID(), r.process.PID())
	if err != nil {
		return kept{}, err
	}
	l, err := r.open(thread)
	if err != nil {
		return kept{}, err
	}
	if m.stopped && r.at.GetKind() == attunev1.SafePoint_KIND_UNSPECIFIED {
		l.mailbox, l.way = &stopped{process: r.process, malloc: regionEntry(r.process, set.Image)}, WayStopped
	}
	v := value{
		name: m.get,
		get: func(ctx context.Context, _ scratch) (int64, error) {
			now, _, err := l.call(ctx, set.Image.Address(get.Value))
			return int64(int32(now)), err
		},
	}
	v.set = func(ctx context.Context, page scratch, to int64) (where string, err error) {
		return m.setOutside(ctx, l, set, to, func() (int64, error) { return v.get(ctx, page) })
	}
	if l.way == WayMailbox { // or another way may serve
		if err := m.outside(ctx, l, set.Image, hookLooks); err != nil {
			return kept{}, err
		}
	}
	if v.old, err = v.get(ctx, scratch{}); err != nil {
		return kept{}, err
	}
	return kept{values: []value{v}, do: withoutPage, way: l.way, where: set.Image.Name()}, nil
}

// setOutside sets a value while the thread is in no parallel region, and again if
// reading it back gives another one.
func (m functions) setOutside(ctx context.Context, l library, set objfile.Resolved, to int64, get func() (int64, error)) (where string, err error) {
	for range setTries {
		if err := m.outside(ctx, l, set.Image, regionLooks); err != nil {
			return "", err
		}
		if _, where, err = l.call(ctx, set.Address, uint64(to)); err != nil {
			return "", err
		}
		if now, err := get(); err != nil || now == to {
			return where, err
		}
	}
	return where, nil // which reading back will tell
}

// Looks for a moment when the thread is in no parallel region.
const (
	regionLooks = 50
	hookLooks   = 5 // at DMLib's hooks, which some run-times come to in regions only
	regionPause = 10 * time.Millisecond
)

// setTries is how often a value is set: between the look and the call by DMLib a
// parallel region may begin, whose end takes the change back.
const setTries = 10

// outside waits until the thread is in no parallel region, whose end would take
// the change back; it looks a number of times.
func (m functions) outside(ctx context.Context, l library, image objfile.Image, looks int) error {
	level, err := image.Symbol("omp_get_level", objfile.Function)
	if err != nil {
		return nil //nolint:nilerr // nothing tells
	}
	for range looks {
		depth, _, err := l.call(ctx, image.Address(level.Value))
		if err != nil || int32(depth) == 0 {
			return err
		}
		time.Sleep(regionPause)
	}
	return fmt.Errorf("%w: the first thread was in a parallel region at all of %d looks", ErrRefused, looks)
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
