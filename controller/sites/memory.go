// SPDX-License-Identifier: Apache-2.0

package sites

import (
	"context"
	"errors"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/controller/patch"
)

// A controller that is killed after it had memory mapped, and before anything
// leads there, leaves it empty. The address of a landing is given by the bytes
// of the code, so the function could never be patched again, unless whoever
// comes next takes it over.

// abandoned says whether an arena's memory looks as if a controller had it
// mapped, which only its content can prove.
func abandoned(arena *patch.Arena, regions []patch.Region) bool {
	return slices.ContainsFunc(regions, func(r patch.Region) bool {
		return r.Bare && r.Start == arena.Start && r.End == arena.End
	})
}

// choose finds a landing for a site: in one of the arenas, or in a new one that
// could be mapped.
func choose(site patch.Site, arenas []*patch.Arena, used func() ([]patch.Region, error)) (landed patch.Site, arena *patch.Arena, err error) {
	landed, err = site.Land(func(landing uint64) error {
		for _, arena = range arenas {
			if arena.Holds(landing) {
				return arena.Vacant(landing)
			}
		}
		start, end := patch.Stretch(landing)
		arena = &patch.Arena{Start: start, End: end}
		regions, err := used()
		if err != nil || abandoned(arena, regions) {
			return err // mapArena knows whether it is
		}
		return patch.Placeable(start, end, regions)
	})
	return landed, arena, err
}

// mapArena has an arena's memory mapped, or takes over what is abandoned there.
func (w writer) mapArena(ctx context.Context, arena *patch.Arena) error {
	err := w.mapAt(ctx, arena.Start, arena.End)
	if !errors.Is(err, unix.EEXIST) {
		return err
	}
	regions, errRegions := (*mapped)(nil).regions(w.process.PID())
	if errRegions != nil || !abandoned(arena, regions) {
		return err
	}
	content, errRead := w.read(arena.Start, int(arena.End-arena.Start))
	if errRead != nil || !patch.Unused(content) {
		return err
	}
	return nil
}

// codeMemory is the memory of one process for what patches lead to. Its [Sites] locks
// it.
type codeMemory struct {
	arenas  []*patch.Arena
	windows []*patch.Window
	errno   *uint64 // address of __errno_location; nil: not looked for yet
}

// landing chooses the place of a landing, has memory there, and takes a place
// for its pointer.
func (m *codeMemory) landing(ctx context.Context, w writer, site patch.Site) (patch.Site, uint64, error) {
	site, arena, err := choose(site, m.arenas, func() ([]patch.Region, error) { return w.mapped.regions(w.process.PID()) })
	if err != nil {
		return site, 0, err
	}
	if !slices.Contains(m.arenas, arena) {
		if err := w.mapArena(ctx, arena); err != nil {
			return site, 0, err
		}
		m.arenas = append(m.arenas, arena)
		w.mapped.reread()
	}
	pointer, err := arena.Take(site.Landing)
	return site, pointer, err
}

// around is how much code and data an instruction may refer to on either side.
const around = 256 << 20

// windowFor finds a window with room for any program of a spot, or has one
// mapped.
func (m *codeMemory) windowFor(ctx context.Context, w writer, address uint64) (*patch.Window, error) {
	const few = patch.MaxProgramBytes + 3*patch.SlotBytes
	for _, window := range m.windows {
		if window.Free() >= few && window.Reaches(address, around) {
			return window, nil
		}
	}
	w.mapped.reread() // what came a moment ago may be in the way
	used, err := w.mapped.regions(w.process.PID())
	if err != nil {
		return nil, err
	}
	start, err := patch.WindowNear(address, around, used)
	if err != nil {
		return nil, err
	}
	if err := w.mapAt(ctx, start, start+patch.WindowBytes); err != nil {
		return nil, err
	}
	w.mapped.reread()
	window := &patch.Window{Start: start}
	m.windows = append(m.windows, window)
	return window, nil
}
