// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"errors"
	"fmt"

	"github.com/attune-hpc/attune/controller/sites"
	"github.com/attune-hpc/attune/internal/objfile"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// maxEntries bounds what one point patches: each takes a page of the process.
const maxEntries = 128

// entriesOf finds the functions of a point in all images; at least one.
func (t *tenant) entriesOf(target *attunev1.FunctionTarget) (found []sites.Function, err error) {
	images, err := t.images()
	if err != nil {
		return nil, err
	}
	for _, image := range images {
		if !watched(image, target.GetObject()) {
			continue
		}
		in, err := t.entriesIn(image, target.GetSymbols())
		if err != nil {
			return nil, err
		}
		found = append(found, in...)
	}
	switch {
	case len(found) == 0:
		return nil, fmt.Errorf("no object defines %s", name(target))
	case len(found) > maxEntries:
		return nil, fmt.Errorf("%d functions match %s: at most %d are patched for one point", len(found), name(target), maxEntries)
	}
	return found, nil
}

func (t *tenant) entriesIn(image objfile.Image, patterns []string) (found []sites.Function, err error) {
	file, err := image.Open()
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }() // read only
	symbols, err := functionsIn(file, patterns)
	if errors.Is(err, objfile.ErrIndirect) {
		return t.chosenIn(image, file, patterns, err)
	}
	for _, s := range symbols {
		found = append(found, sites.Function{Image: image, Symbol: s})
	}
	return found, err
}

// chosenIn finds what an indirect function stands for in the process. why says
// that it is one.
func (t *tenant) chosenIn(image objfile.Image, file *objfile.File, patterns []string, why error) ([]sites.Function, error) {
	if len(patterns) != 1 {
		return nil, why
	}
	resolver, err := file.SymbolOf(patterns[0], objfile.Function)
	if err != nil || !resolver.IFunc() {
		return nil, why
	}
	chosen, err := t.process.Sites().Chosen(image, resolver)
	if err != nil {
		return nil, fmt.Errorf("%w; %w", why, err)
	}
	return []sites.Function{chosen}, nil
}
