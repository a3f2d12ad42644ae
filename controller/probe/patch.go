// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/attune-hpc/attune/controller/capture"
	"github.com/attune-hpc/attune/controller/patch"
	"github.com/attune-hpc/attune/controller/shm"
	"github.com/attune-hpc/attune/controller/sites"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// patches counts in patched functions of one process. It is guarded by tenant.mu.
type patches struct {
	*host
	measured map[int][]sites.Function // what is patched for a local index
}

// place patches the entries or exits of all functions of a point, or of those that
// can be, if some will do. why says why nothing cheaper serves; before
// is what serves the point already, or nil.
func (q *patches) place(ctx context.Context, index uint16, spec *attunev1.MeasurePoint, before *placement, why string, some bool) (*placement, error) {
	memory, err := q.patchable(spec)
	if err != nil {
		return nil, err
	}
	functions, err := q.entriesOf(spec.GetFunction())
	if err != nil {
		return nil, err
	}
	ctx, cancel := q.atSafePoint(ctx)
	defer cancel()
	p := &placement{mechanism: MechanismPatch, reason: why, why: why}
	var refused error
	for _, f := range functions {
		err := q.patchOne(ctx, memory, index, spec, f, p, some)
		switch {
		case err == nil:
		case some && errors.Is(err, patch.ErrUnpatchable):
			refused = errors.Join(refused, err)
		default:
			q.drop(context.WithoutCancel(ctx), memory, p.locals, before)
			return nil, err
		}
	}
	if len(p.locals) == 0 {
		return nil, refused
	}
	if refused != nil {
		p.reason, p.partly = refused.Error(), passes(refused)
	}
	if p.partly {
		p.reason += whyAgain
	}
	slices.Sort(p.symbols)
	return p, nil
}

// patchable says whether DMLib can serve the point by patches.
func (q *patches) patchable(spec *attunev1.MeasurePoint) (*shm.Memory, error) {
	memory := q.process.Memory()
	switch {
	case memory == nil:
		return nil, withoutDMLib(q.process)
	case spec.GetParameter() >= shm.Parameters:
		return nil, fmt.Errorf("an entry patch takes one of the first %d integer parameters", shm.Parameters)
	}
	return memory, nil
}

// patchOne turns a function's point on and patches it, in this order. beside is
// that of [sites.Where]. Whatever is wrong about the function wraps
// [patch.ErrUnpatchable].
func (q *patches) patchOne(ctx context.Context, memory *shm.Memory, index uint16, spec *attunev1.MeasurePoint, f sites.Function, p *placement, beside bool) error {
	delivery, captures, err := q.control(index, spec, MechanismPatch)
	if err != nil {
		return err
	}
	where := whereOf(spec.GetPlace(), captures, beside)
	local, err := q.localFor(index, f, where)
	if err != nil {
		return fmt.Errorf("%s: %w", f.Symbol.Name, err)
	}
	owner := q.owner[local]
	p.captured = captures
	p.reckon(spec)
	if err := memory.SetPoint(local, delivery); err != nil {
		return err
	}
	if err := q.measure(ctx, f, local-shm.HookCount, where); err != nil {
		if owner == 0 {
			memory.ClearPoint(local)
		}
		return fmt.Errorf("%s: %w", f.Symbol.Name, err)
	}
	q.owner[local] = index
	if !slices.ContainsFunc(q.measured[local], f.Same) {
		q.measured[local] = append(q.measured[local], f)
	}
	p.locals = append(p.locals, local)
	p.symbols = append(p.symbols, f.Symbol.Name)
	return nil
}

// maxPointsAt is how many points of a process may be at one function: their
// programs are executed one after the other.
const maxPointsAt = 16

// localFor finds the local point by which a point is served at a function: the one
// that it has there already, or the first for these places that no other point has.
func (q *patches) localFor(index uint16, f sites.Function, at sites.Where) (local int, err error) {
	key := sites.KeyOf(f)
	for local, functions := range q.measured {
		if q.owner[local] == index && sites.KeyOf(functions[0]) == key {
			return local, nil
		}
	}
	for nth := range maxPointsAt {
		number, err := q.process.Sites().Number(f, at, nth)
		if err != nil {
			return 0, err
		}
		if local = shm.HookCount + number; q.owner[local] == 0 {
			return local, nil
		}
	}
	return 0, fmt.Errorf("%d other measure points are at it", maxPointsAt)
}

// whereOf says where a function is to be patched for a place.
func whereOf(place attunev1.Place, captures captures, beside bool) sites.Where {
	return sites.Where{
		Entry:  place != attunev1.Place_PLACE_EXIT,
		Exits:  place == attunev1.Place_PLACE_EXIT || place == attunev1.Place_PLACE_BOTH,
		Beside: beside,
		Result: place == attunev1.Place_PLACE_EXIT || captures.program.Has(capture.Capture.AtReturn),
	}
}

// drop turns points off and ends the measuring of their functions,
// except for what serves the placement kept. A patch that cannot be changed in time
// stays, and does nothing.
func (q *patches) drop(ctx context.Context, memory *shm.Memory, locals []int, kept *placement) {
	ctx, cancel := context.WithTimeout(ctx, safePointTimeout)
	defer cancel()
	for _, local := range locals {
		if kept != nil && slices.Contains(kept.locals, local) {
			continue
		}
		memory.ClearPoint(local)
		q.owner[local] = 0
		for _, f := range q.measured[local] {
			if err := q.measure(ctx, f, local-shm.HookCount, sites.Where{}); err != nil {
				q.log.Debug("entry patch is not taken out", "pid", q.process.PID(), "reason", err)
			}
		}
		delete(q.measured, local)
	}
}

// yield lets the kernel count what patches count at entries.
func (q *patches) yield(locals []int) {
	for _, local := range locals {
		for _, f := range q.measured[local] {
			if err := q.process.Sites().Yield(f, local-shm.HookCount); err != nil {
				q.log.Debug("patch under a uprobe", "pid", q.process.PID(), "function", f.Symbol.Name, "error", err)
			}
		}
	}
}
