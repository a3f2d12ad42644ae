// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"maps"
	"slices"

	"github.com/attune-hpc/attune/controller/shm"
	"github.com/attune-hpc/attune/dmlib/abi"
	"github.com/attune-hpc/attune/internal/objfile"
)

// hookable is a GOT slot that is to lead to one of DMLib's hooks. To is an offset from
// DMLib's load address.
type hookable struct {
	shm.Slot

	real uint64 // the function behind the hook; 0: not known
}

// realFunction stands behind a hook.
type realFunction struct {
	name    string
	address uint64
}

// findReals finds the functions behind the hooks, and behind those that are led to on
// demand. One that several objects
// define is left out: DMLib, inside, knows their order.
func findReals(pid int, images []objfile.Image, hooks map[string]uint64) (reals []realFunction) {
	names := slices.Collect(maps.Keys(hooks))
	for _, h := range shm.Hooks() {
		if h.Led() {
			names = append(names, h.Name)
		}
	}
	found := make(map[string][]uint64)
	for _, image := range images {
		if image.Matches("libattune-dm*") || isProgram(pid, image) {
			continue
		}
		file, err := image.Open()
		if err != nil {
			return nil // it may define some
		}
		for _, name := range names {
			if s, err := file.SymbolOf(name, objfile.Function); err == nil && isExported(s) {
				address := image.Address(s.Value)
				if s.IFunc() {
					address = 0
				}
				found[name] = append(found[name], address)
			}
		}
		file.Close()
	}
	for name, addresses := range found {
		if len(addresses) == 1 && addresses[0] != 0 && len(name) < abi.AttachName {
			reals = append(reals, realFunction{name, addresses[0]})
		}
	}
	return reals
}

// findSlots finds the GOT slots of all objects that lead to functions which
// DMLib hooks. An object whose file cannot be read any more keeps its calls.
func findSlots(images []objfile.Image, hooks map[string]uint64, reals []realFunction) (slots []hookable) {
	behind := make(map[string]uint64)
	for _, r := range reals {
		behind[r.name] = r.address
	}
	wanted := slices.Sorted(maps.Keys(hooks))
	for _, image := range images {
		// The C library's own calls stay inside, as they do where DMLib is preloaded: fork,
		// for one, holds the allocator's locks.
		if image.Matches("libattune-dm*") || image.IsLoader() || image.IsLibc() {
			continue
		}
		found, err := image.GOTSlots(wanted...)
		if err != nil {
			continue
		}
		for _, slot := range found {
			slots = append(slots, hookable{shm.Slot{
				Address: image.Address(slot.VirtualAddress), To: hooks[slot.Symbol], RELRO: slot.RELRO,
				Origin: slot.Origin, Bias: image.Bias,
			}, behind[slot.Symbol]})
		}
	}
	return slots
}
