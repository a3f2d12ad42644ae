// SPDX-License-Identifier: Apache-2.0

package setting

import (
	"context"
	"fmt"
	"time"

	"github.com/attune-hpc/attune/controller/actuate/access"
	"github.com/attune-hpc/attune/internal/objfile"
	"github.com/attune-hpc/attune/internal/procid"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// functions is a setting with a function to set it and one to get it, int both,
// that belong to the thread that calls them: the program's first one.
type functions struct {
	set, get string
	// stopped has a stopped thread make the calls, also where DMLib is: the thread
	// may never come to one of its hooks.
	stopped bool
}

func (m functions) find(ctx context.Context, r *settingRequest) (kept, error) {
	set, err := access.LookupSingle(r.Process, m.set)
	if err != nil {
		return kept{}, err
	}
	get, err := set.Image.Symbol(m.get, objfile.Function)
	if err != nil {
		return kept{}, fmt.Errorf("%s has %s without %s: %w", set.Image.Name(), m.set, m.get, err)
	}
	thread, err := procid.InnerID(r.Process.PID(), r.Process.PID())
	if err != nil {
		return kept{}, err
	}
	l, err := r.open(thread)
	if err != nil {
		return kept{}, err
	}
	if m.stopped && r.Change.GetSafePoint().GetKind() == attunev1.SafePoint_KIND_UNSPECIFIED {
		l.mailbox, l.way = &stopped{process: r.Process, malloc: regionEntry(r.Process, set.Image)}, access.WayStopped
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
	if l.way == access.WayMailbox { // or another way may serve
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
	return fmt.Errorf("%w: the first thread was in a parallel region at all of %d looks", access.ErrRefused, looks)
}
