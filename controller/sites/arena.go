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

// mapArena has an arena's memory mapped, or takes over what is abandoned there.
func (w writer) mapArena(ctx context.Context, arena *patch.Arena) error {
	err := w.mapAt(ctx, arena.Start, arena.End)
	if !errors.Is(err, unix.EEXIST) {
		return err
	}
	regions, errRegions := regions(w.pid)
	if errRegions != nil || !abandoned(arena, regions) {
		return err
	}
	content, errRead := w.read(arena.Start, int(arena.End-arena.Start))
	if errRead != nil || !patch.Unused(content) {
		return err
	}
	return nil
}
