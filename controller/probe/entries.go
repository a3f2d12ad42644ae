// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"errors"
	"fmt"

	"github.com/attune-hpc/attune/controller/patch"
	"github.com/attune-hpc/attune/internal/objfile"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// entry is the entry of a function that is to be patched.
type entry struct {
	symbol string
	key    functionKey
	site   patch.Site
}

// maxEntries bounds what one point patches: each takes a page of the process.
const maxEntries = 128

// entriesOf finds the functions of a point in all images. Those that cannot be
// patched are left out and told in refused.
func (t *tenant) entriesOf(target *attunev1.FunctionTarget) (found []entry, refused, err error) {
	images, err := t.process.Images()
	if err != nil {
		return nil, nil, err
	}
	var refusals []error
	for _, image := range images {
		if !watched(image, target.GetObject()) {
			continue
		}
		in, reason, err := entriesIn(image, target.GetSymbols())
		if err != nil {
			return nil, nil, err
		}
		found, refusals = append(found, in...), append(refusals, reason)
	}
	refused = errors.Join(refusals...)
	switch {
	case len(found) == 0 && refused == nil:
		return nil, nil, fmt.Errorf("no object defines %s", name(target))
	case len(found) > maxEntries:
		return nil, nil, fmt.Errorf("%d functions match %s: at most %d are patched for one point", len(found), name(target), maxEntries)
	}
	return found, refused, nil
}

func entriesIn(image objfile.Image, patterns []string) (found []entry, refused, err error) {
	file, err := image.Open()
	if err != nil {
		return nil, nil, err
	}
	defer func() { _ = file.Close() }() // read only
	symbols, err := functionsIn(file, patterns)
	if err != nil {
		return nil, nil, err
	}
	if len(symbols) > 0 && file.IsGo() {
		return nil, fmt.Errorf("%w: %s is Go code, whose stacks have no room", patch.ErrUnpatchable, image.Name()), nil
	}
	var refusals []error
	for _, s := range symbols {
		e, err := entryOf(image, file, s)
		if err != nil {
			refusals = append(refusals, fmt.Errorf("%s: %w", s.Name, err))
			continue
		}
		found = append(found, e)
	}
	return found, errors.Join(refusals...), nil
}

// entryOf examines the code as the file has it; what the process has in its
// place is looked at when it is patched.
func entryOf(image objfile.Image, file *objfile.File, s objfile.Symbol) (entry, error) {
	code, err := file.Code(s, patch.SiteBytes)
	if err != nil {
		return entry{}, err
	}
	site, err := patch.Examine(image.Address(s.Value), code)
	return entry{symbol: s.Name, key: functionKey{image.Device, image.Inode, s.FileOffset}, site: site}, err
}
