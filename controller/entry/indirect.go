// SPDX-License-Identifier: Apache-2.0

package entry

import (
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/attune-hpc/attune/internal/objfile"
	"github.com/attune-hpc/attune/internal/procmem"
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
			content := make([]byte, 8)
			if err := procmem.Read(s.process.PID(), importer.Address(slot.VirtualAddress), content); err != nil {
				return Function{}, err
			}
			address := binary.LittleEndian.Uint64(content)
			if f, ok := chosenAt(image, resolver, address); ok {
				return f, nil
			}
		}
	}
	return Function{}, fmt.Errorf("%w: %s of %s: %w", objfile.ErrIndirect, resolver.Name, image.Name(), errUnresolved)
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
	chosen.Size = outline.Size(chosen.Value)
	chosen.FileOffset, chosen.InFile = file.Offset(chosen.Value, max(chosen.Size, 1))
	return Function{Image: image, Symbol: chosen}, chosen.InFile
}
