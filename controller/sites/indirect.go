// SPDX-License-Identifier: Apache-2.0

package sites

import (
	"debug/elf"
	"errors"
	"fmt"
	"slices"

	"github.com/attune-hpc/attune/controller/patch"
	"github.com/attune-hpc/attune/controller/patch/flow"
	"github.com/attune-hpc/attune/controller/sites/object"
	"github.com/attune-hpc/attune/internal/objfile"
	"github.com/attune-hpc/attune/internal/proc"
)

// errUnresolved: an indirect function that nobody has called yet.
var errUnresolved = errors.New("no slot of the process holds yet what was chosen")

// Chosen finds the function that an indirect one (IFUNC) stands for in the
// process: what the loader, or the first call, has written into a slot of some
// object. resolver is the symbol in image. The error wraps
// [objfile.ErrIndirect].
func (s *Sites) Chosen(image objfile.Image, resolver objfile.Symbol) (Function, error) {
	images, err := s.process.Images()
	if err != nil {
		return Function{}, err
	}
	for _, importer := range images {
		slots, err := slotsOf(importer, image, resolver)
		if err != nil {
			continue // another one may tell
		}
		for _, slot := range slots {
			address, err := proc.ReadWord(s.process, importer.Address(slot.VirtualAddress))
			if err != nil {
				return Function{}, err
			}
			if f, ok := chosenAt(image, resolver, address); ok {
				return f, nil
			}
		}
	}
	return Function{}, fmt.Errorf("%w: %s of %s: %w", objfile.ErrIndirect, resolver.Name, image.Name(), errUnresolved)
}

// ChosenAlone is Chosen for what is to be done to the one function and no other:
// the error is also that another indirect function of the object may have chosen
// the same code, as those of memcpy and memmove do. What they choose among is
// read from the code of their resolvers; one that took it from a table would not
// be understood.
func (s *Sites) ChosenAlone(image objfile.Image, resolver objfile.Symbol) (Function, error) {
	f, err := s.Chosen(image, resolver)
	if err != nil {
		return f, err
	}
	o, err := object.Open(image)
	if err != nil {
		return f, err
	}
	defer func() { _ = o.Close() }() // read only
	resolvers, err := resolversOf(o)
	if err != nil {
		return f, fmt.Errorf("%w: %w", objfile.ErrIndirect, err)
	}
	for _, other := range resolvers {
		among, err := s.choosesAmong(o, image, other, f.Symbol.Value)
		switch same := other.Value == resolver.Value; {
		case err != nil:
			return f, fmt.Errorf("what %s chooses among is not known: %w: %w", other.Name, err, objfile.ErrIndirect)
		case same && !among:
			return f, fmt.Errorf("how %s chooses is not understood: %w", other.Name, objfile.ErrIndirect)
		case !same && among:
			return f, fmt.Errorf("%s may have chosen the same code as %s: %w", other.Name, resolver.Name, objfile.ErrIndirect)
		}
	}
	return f, nil
}

// maxResolvers bounds the resolvers of one object whose code is read. The C library has
// some hundred.
const maxResolvers = 4096

// resolversOf lists the indirect functions of an object, each once, whatever it is called in
// how many tables; also those that only its debug symbols tell of, where these are there.
func resolversOf(o *object.Object) (resolvers []objfile.Symbol, err error) {
	seen := make(map[uint64]bool)
	err = o.EachFunction(func(s objfile.Symbol) error {
		if s.IFunc() && !seen[s.Value] {
			seen[s.Value] = true
			resolvers = append(resolvers, s)
		}
		if len(resolvers) > maxResolvers {
			return fmt.Errorf("more than %d indirect functions", maxResolvers)
		}
		return nil
	})
	return resolvers, err
}

// choosesAmong says whether an address is one that a resolver names, or that
// stands in memory that it refers to.
func (s *Sites) choosesAmong(o *object.Object, image objfile.Image, resolver objfile.Symbol, address uint64) (bool, error) {
	code, err := o.Function(resolver)
	if err != nil {
		return false, err
	}
	computed, memory, err := flow.Names(code)
	if err != nil {
		return false, fmt.Errorf("%w: %w", patch.ErrUnpatchable, err)
	}
	if slices.Contains(computed, address) {
		return true, nil
	}
	return slices.ContainsFunc(memory, func(at uint64) bool {
		chosen, err := proc.ReadWord(s.process, image.Address(at))
		return err == nil && chosen == image.Address(address)
	}), nil
}

// slotsOf lists the slots of one object that may hold the choice.
func slotsOf(importer, image objfile.Image, resolver objfile.Symbol) ([]objfile.Slot, error) {
	file, err := importer.Open()
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }() // read only
	slots, err := file.GOTSlots(resolver.Name)
	if err == nil && importer.Bias == image.Bias {
		own, ownErr := file.IndirectSlots(resolver.Value)
		slots, err = append(slots, own...), ownErr
	}
	return slots, err
}

// chosenAt makes the function at an address, if it is in the object's code and
// is not the resolver itself.
func chosenAt(image objfile.Image, resolver objfile.Symbol, address uint64) (Function, bool) {
	file, err := image.Open()
	if err != nil || address < image.Start || address >= image.End {
		return Function{}, false
	}
	defer func() { _ = file.Close() }() // read only
	chosen := resolver
	chosen.Type, chosen.Value, chosen.Size = elf.STT_FUNC, address-image.Bias, 0
	outline, err := file.Outline()
	if err != nil || chosen.Value == resolver.Value || outline.Stub(chosen.Value) {
		return Function{}, false
	}
	chosen.Size = sizeAt(file, outline, chosen.Value)
	chosen.FileOffset, chosen.InFile = file.Offset(chosen.Value, max(chosen.Size, 1))
	return Function{Image: image, Symbol: chosen}, chosen.InFile
}

// sizeAt is the size of the function that begins at an address: as symbols tell,
// else .eh_frame, which stripping leaves. 0 if neither does.
func sizeAt(file *objfile.File, outline *objfile.Outline, address uint64) uint64 {
	if size := outline.Size(address); size > 0 {
		return size
	}
	frames, err := file.Frames()
	if err != nil {
		return 0
	}
	if frame, ok := frames.Holding(address); ok && frame.Start == address {
		return frame.End - frame.Start
	}
	return 0
}
