// SPDX-License-Identifier: Apache-2.0

package entry

import (
	"context"
	"fmt"

	"github.com/attune-hpc/attune/controller/patch"
	"github.com/attune-hpc/attune/internal/objfile"
)

// errTail: what a function returns is not known where it ends, some of the time.
var errTail = fmt.Errorf("%w: it ends in a jump to another function, whose result is not seen there", patch.ErrUnpatchable)

// maxCode is the largest function whose exits are looked for, bytes.
const maxCode = 1 << 20

// findExits prepares all exits of a function. The caller holds s.mu.
func (s *Sites) findExits(ctx context.Context, w writer, fn *function) error {
	if fn.exits != nil {
		return nil
	}
	_, hook := w.hooks()
	if hook == 0 && w.memory != nil {
		return fmt.Errorf("%w: DMLib there serves no exits", patch.ErrUnpatchable)
	}
	sites, tails, err := exitsOf(fn.Function)
	if err != nil {
		return err
	}
	exits := make([]*spot, 0, len(sites))
	for i, site := range sites {
		if err := distinct(site, sites[:i]); err != nil {
			return err
		}
		p, err := s.spot(ctx, w, fn.Function, site, hook)
		if err != nil {
			return fmt.Errorf("exit at %#x: %w", site.Address-fn.Image.Bias, err)
		}
		exits = append(exits, p)
	}
	fn.exits, fn.tails = exits, tails
	for _, p := range exits {
		s.inherited(fn, p)
	}
	return nil
}

// distinct refuses a place whose patch would change the jump of another one.
func distinct(site patch.Site, others []patch.Site) error {
	for _, other := range others {
		if site.Overlaps(other) {
			return fmt.Errorf("%w: its exit at %#x is %d bytes from what else is patched",
				patch.ErrUnpatchable, site.Address, int64(other.Address-site.Address))
		}
	}
	return nil
}

// exitsOf decodes a function as its file has it, and says whether some exits
// are jumps to other functions.
func exitsOf(f Function) (sites []patch.Site, tails bool, err error) {
	file, err := f.Image.Open()
	if err != nil {
		return nil, false, err
	}
	defer func() { _ = file.Close() }() // read only
	outline, err := file.Outline()
	if err != nil {
		return nil, false, err
	}
	hot, err := partOf(file, f.Symbol)
	if err != nil {
		return nil, false, err
	}
	var cold []patch.Part
	for _, symbol := range outline.Cold(f.Symbol) {
		part, err := partOf(file, symbol)
		if err != nil {
			return nil, false, err
		}
		cold = append(cold, part)
	}
	exits, err := patch.Exits(hot, cold, outline.Begins)
	if err != nil {
		return nil, false, err
	}
	for _, exit := range exits {
		site, err := exitSite(f, file, exit)
		if err != nil {
			return nil, false, err
		}
		sites, tails = append(sites, site), tails || exit.Tail
	}
	return sites, tails, nil
}

// partOf reads the code of a symbol.
func partOf(file *objfile.File, s objfile.Symbol) (patch.Part, error) {
	if s.Size == 0 || s.Size > maxCode {
		return patch.Part{}, fmt.Errorf("%w: its file says that it has %d bytes of code", patch.ErrUnpatchable, s.Size)
	}
	code, err := file.Code(s, int(s.Size))
	return patch.Part{Address: s.Value, Code: code}, err
}

// exitSite examines an exit. What stands behind it may be another function's.
func exitSite(f Function, file *objfile.File, exit patch.Exit) (patch.Site, error) {
	at := f.Symbol // in the same segment, in whichever part
	at.FileOffset += exit.Address - at.Value
	at.Value = exit.Address
	code, err := file.Code(at, patch.SiteBytes)
	if err != nil {
		return patch.Site{}, err
	}
	return patch.ExamineExit(f.Image.Address(exit.Address), code, exit)
}
