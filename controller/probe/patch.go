// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/attune-hpc/attune/controller/patch"
	"github.com/attune-hpc/attune/controller/ring"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// patched is a function whose entry was patched. What the patch leads to stays
// when it is taken out: a thread may be in it.
type patched struct {
	site   patch.Site
	number int
	active bool
}

// placePatch patches the entries of all functions of a point, or of those that
// can be, if some will do. why says why nothing cheaper serves. The caller
// holds t.mu.
func (t *tenant) placePatch(ctx context.Context, index uint16, spec *attunev1.MeasurePoint, why string, some bool) (*placement, error) {
	w, err := t.patchWriter(spec)
	if err != nil {
		return nil, err
	}
	entries, refused, err := t.entriesOf(spec.GetFunction())
	if err != nil {
		return nil, err
	}
	if refused != nil && (!some || len(entries) == 0) {
		return nil, refused
	}
	ctx, cancel := context.WithTimeout(ctx, t.placer.options.SafePointTimeout)
	defer cancel()
	p := &placement{mechanism: MechanismPatch, reason: why, cost: cost(spec) + costPatch}
	for _, e := range entries {
		err := t.patchOne(ctx, w, index, spec, e, p)
		switch {
		case err == nil:
		case some && errors.Is(err, patch.ErrUnpatchable):
			refused = errors.Join(refused, err)
		default:
			t.dropPatches(w, p.locals, t.placed[index])
			return nil, err
		}
	}
	if len(p.locals) == 0 {
		return nil, refused
	}
	if refused != nil {
		p.reason = refused.Error()
	}
	slices.Sort(p.symbols)
	return p, nil
}

// patchWriter says whether DMLib can serve the point by patches.
func (t *tenant) patchWriter(spec *attunev1.MeasurePoint) (patchWriter, error) {
	memory := t.process.Memory()
	if memory == nil {
		return patchWriter{}, errNoDMLib
	}
	app := memory.App()
	switch {
	case !app.Ready || app.PatchEntry == 0:
		return patchWriter{}, errors.New("DMLib serves no entry patches in this process")
	case spec.GetPlace() == attunev1.Place_PLACE_EXIT || spec.GetPlace() == attunev1.Place_PLACE_BOTH:
		return patchWriter{}, errors.New("an entry patch sees the entry only")
	case spec.GetParameter() >= ring.Parameters:
		return patchWriter{}, fmt.Errorf("an entry patch takes one of the first %d integer parameters", ring.Parameters)
	}
	return patchWriter{memory: memory, hook: app.PatchEntry, pid: t.process.PID()}, nil
}

// patchOne makes room for one function's island, turns its point on and
// patches its entry, in this order. Whatever is wrong about the function wraps
// [patch.ErrUnpatchable].
func (t *tenant) patchOne(ctx context.Context, w patchWriter, index uint16, spec *attunev1.MeasurePoint, e entry, p *placement) error {
	f, err := t.prepared(ctx, w, e)
	if err != nil {
		return fmt.Errorf("%s: %w", e.symbol, err)
	}
	local := ring.HookCount + f.number
	if owner := t.owner[local]; owner != 0 && owner != index {
		return fmt.Errorf("%s: %w", e.symbol, errBusy)
	}
	if err := w.memory.SetPoint(local, control(index, spec)); err != nil {
		return err
	}
	t.owner[local] = index
	p.locals = append(p.locals, local)
	p.symbols = append(p.symbols, e.symbol)
	if err := w.activate(f.site); err != nil {
		return fmt.Errorf("%s: %w", e.symbol, err)
	}
	f.active = true
	return nil
}

// prepared returns a function whose island stands, a new one if need be. A
// forked child has its parent's.
func (t *tenant) prepared(ctx context.Context, w patchWriter, e entry) (*patched, error) {
	number, err := t.placer.numbers.of(e.key)
	if err != nil {
		return nil, err
	}
	if w.has(e.site, number) {
		return t.remember(e.site, number), nil
	}
	for _, other := range t.patches {
		if other.site.Address != e.site.Address && other.site.Overlaps(e.site) {
			return nil, fmt.Errorf("%w: another patch is %d bytes away", patch.ErrUnpatchable, int64(other.site.Address-e.site.Address))
		}
	}
	if err := w.untouched(e.site); err != nil {
		return nil, err
	}
	island, err := t.makeRoom(ctx, w, e.site)
	if err != nil {
		return nil, err
	}
	if err := w.build(e.site, island, number); err != nil {
		return nil, err
	}
	return t.remember(e.site, number), nil
}

func (t *tenant) remember(site patch.Site, number int) *patched {
	if f := t.patches[site.Address]; f != nil && f.number == number {
		return f
	}
	f := &patched{site: site, number: number}
	t.patches[site.Address] = f
	return f
}

// makeRoom has memory where the patch will lead, and returns where in it the
// island goes.
func (t *tenant) makeRoom(ctx context.Context, w patchWriter, site patch.Site) (island uint64, err error) {
	for _, a := range t.arenas {
		if a.Holds(site.Landing) {
			return a.Take(site.Landing)
		}
	}
	start, end := patch.Stretch(site.Landing)
	if err := w.mapArena(ctx, start, end); err != nil {
		return 0, err
	}
	a := &patch.Arena{Start: start, End: end}
	t.arenas = append(t.arenas, a)
	return a.Take(site.Landing)
}

// dropPatches turns points off and gives the functions their first bytes back,
// except for what serves the placement kept.
func (t *tenant) dropPatches(w patchWriter, locals []int, kept *placement) {
	for _, local := range locals {
		if kept != nil && slices.Contains(kept.locals, local) {
			continue
		}
		w.memory.ClearPoint(local)
		t.owner[local] = 0
		for _, f := range t.patches {
			if !f.active || ring.HookCount+f.number != local {
				continue
			}
			f.active = false
			if err := w.deactivate(f.site); err != nil {
				t.placer.log.Debug("entry patch is not taken out", "pid", w.pid, "reason", err)
			}
		}
	}
}
