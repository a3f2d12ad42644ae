// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/attune-hpc/attune/controller/probe/symbols"
	"github.com/attune-hpc/attune/controller/shm"
	"github.com/attune-hpc/attune/controller/sites"
	"github.com/attune-hpc/attune/internal/objfile"
	"github.com/attune-hpc/attune/internal/proc"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// maxEntries bounds what one point patches: each takes a page of the process.
const maxEntries = 128

// entriesOf finds the functions of a point in all images; at least one.
func (h *host) entriesOf(target *attunev1.FunctionTarget) (found []sites.Function, err error) {
	images, err := h.images()
	if err != nil {
		return nil, err
	}
	for _, image := range images {
		if !symbols.Watched(image, target.GetObject()) {
			continue
		}
		in, err := h.entriesIn(image, target.GetSymbols())
		if err != nil {
			return nil, err
		}
		found = append(found, in...)
	}
	switch {
	case len(found) == 0:
		return nil, fmt.Errorf("no object defines %s", symbols.TargetName(target))
	case len(found) > maxEntries:
		return nil, fmt.Errorf("%d functions match %s: at most %d are patched for one point", len(found), symbols.TargetName(target), maxEntries)
	}
	return found, nil
}

func (h *host) entriesIn(image objfile.Image, patterns []string) (found []sites.Function, err error) {
	file, err := image.Open()
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }() // read only
	functions, err := symbols.FunctionsIn(file, patterns)
	if errors.Is(err, objfile.ErrIndirect) {
		return h.chosenIn(image, file, patterns, err)
	}
	for _, s := range functions {
		found = append(found, sites.Function{Image: image, Symbol: s})
	}
	return found, err
}

// chosenIn finds what an indirect function stands for in the process. why says
// that it is one.
func (h *host) chosenIn(image objfile.Image, file *objfile.File, patterns []string, why error) ([]sites.Function, error) {
	if len(patterns) != 1 {
		return nil, why
	}
	resolver, err := file.SymbolOf(patterns[0], objfile.Function)
	if err != nil || !resolver.IFunc() {
		return nil, why
	}
	chosen, err := h.process.Sites().Chosen(image, resolver)
	if err != nil {
		return nil, fmt.Errorf("%w; %w", why, err)
	}
	return []sites.Function{chosen}, nil
}

// wantedSlot is a GOT slot that should lead to the stub of a function.
type wantedSlot struct {
	shm.Slot

	symbol   string
	function uint64 // where the slot should lead in the end
}

// to is the slot that leads to a hook or stub.
func (s wantedSlot) to(address uint64) shm.Slot {
	s.To = address
	return s.Slot
}

// wantedSlots finds the slots of all objects whose symbol matches, and where
// each should lead. Indirect functions and symbols that nothing defines are
// left out, with the reason; that is also what is not seen by the slots of the
// defining object alone.
func (h *host) wantedSlots(target *attunev1.FunctionTarget) (wanted []wantedSlot, reason string, err error) {
	images, err := h.images()
	if err != nil {
		return nil, "", err
	}
	functions := newFunctionsOf(&h.exports, images, target)
	images = functions.images
	if !slices.ContainsFunc(images, func(i objfile.Image) bool { return i.Matches(target.GetObject()) }) {
		return nil, "", symbols.NoObject(images, target.GetObject())
	}
	others := false // call it as well
	var refused []string
	for _, image := range images {
		slots, err := h.slots.Matching(image, target.GetSymbols()...)
		if err != nil {
			refused = append(refused, err.Error())
			continue
		}
		for _, slot := range slots {
			function, err := functions.behind(h.process, image, slot)
			if err != nil {
				refused = append(refused, err.Error())
				continue
			}
			others = others || target.GetObject() == "" || !image.Matches(target.GetObject())
			wanted = append(wanted, wantedSlot{
				shm.Slot{Address: image.Address(slot.VirtualAddress), RELRO: slot.RELRO, Origin: slot.Origin, Bias: image.Bias},
				slot.Symbol, function,
			})
		}
	}
	if reason = several(refused); len(wanted) > 0 && !others && reason == "" {
		reason = "no other object calls it through dynamic linking; calls through pointers are not counted"
	}
	return wanted, reason, nil
}

// functionsOf finds the functions of a target, by the names of slots.
type functionsOf struct {
	exports *symbols.Exports
	images  []objfile.Image // without DMLib
	dmlib   objfile.Image   // zero: it is not in the process
	object  string
	version bool // the target names one
	found   map[slotName]foundFunction
}

// slotName is what a slot is linked to; objects may be linked to different versions.
type slotName struct{ symbol, version string }

type foundFunction struct {
	address uint64
	err     error // why there is none
	// hook is DMLib's, which leads on to the function, or else the function; 0: nobody
	// has looked.
	hook  uint64
	other error // what else calls by this name may lead to, once somebody has looked
}

func newFunctionsOf(exports *symbols.Exports, images []objfile.Image, target *attunev1.FunctionTarget) functionsOf {
	f := functionsOf{exports: exports, object: target.GetObject(), found: make(map[slotName]foundFunction)}
	f.version = slices.ContainsFunc(target.GetSymbols(), func(s string) bool { return strings.Contains(s, "@") })
	for _, image := range images {
		if image.Matches("libattune-dm*") {
			f.dmlib = image
			continue
		}
		f.images = append(f.images, image)
	}
	return f
}

// behind is where the calls through a slot of an image go on to: the function, or the
// hook of DMLib before it. What leads to another function of that name, or may, is left
// alone: memory of one allocator would be given back to another.
func (f functionsOf) behind(process proc.Holder, image objfile.Image, slot objfile.Slot) (uint64, error) {
	at := f.named(slot)
	if at.err != nil {
		return 0, at.err
	}
	target, err := proc.ReadWord(process, image.Address(slot.VirtualAddress))
	if err != nil {
		return at.address, nil //nolint:nilerr // writing will tell
	}
	callee, told := objfile.Callee(f.images, slot.Symbol, at.address, target)
	switch {
	case told && callee.Has(at.address):
		return at.address, nil
	case told:
		return 0, fmt.Errorf("%s calls that of %s, not this one", image.Name(), callee.Name())
	}
	return f.untold(image, slot, at)
}

// untold is behind for a slot that does not tell: the loader has not bound it yet, or a
// hook or stub of DMLib has its calls.
func (f functionsOf) untold(image objfile.Image, slot objfile.Slot, at foundFunction) (uint64, error) {
	name := slot.Symbol
	if at.hook == 0 && at.other == nil {
		if other, yes := objfile.Namesake(f.images, name, at.address, f.exports.Has); yes {
			at.other = fmt.Errorf("may call that of %s, not this one", other.Name())
		}
		at.hook = at.address
		if f.exports.Has(f.dmlib, name) {
			if s, err := f.dmlib.Symbol(name, objfile.Function); err == nil {
				at.hook = f.dmlib.Address(s.Value)
			}
		}
		f.found[slotName{name, slot.Version}] = at
	}
	if at.other != nil {
		return 0, fmt.Errorf("%s %w", image.Name(), at.other)
	}
	return at.hook, nil
}

// named is the target's function that a slot is linked to. The loader takes one of several
// versions by what the object was linked to: a stub that led on to another one would
// change what the program does.
func (f functionsOf) named(slot objfile.Slot) foundFunction {
	key := slotName{slot.Symbol, slot.Version}
	at, known := f.found[key]
	if known {
		return at
	}
	name := slot.Symbol
	if f.version && slot.Version != "" {
		name += "@" + slot.Version
	}
	resolved, err := objfile.ResolveIn(f.images, f.object, name, objfile.Function)
	if err == nil && resolved.OtherVersion(slot) {
		err = fmt.Errorf("calls of %s@%s go to another version than the one that is watched", slot.Symbol, slot.Version)
	}
	at = foundFunction{address: resolved.Address, err: err}
	f.found[key] = at
	return at
}
