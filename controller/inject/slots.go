// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"maps"
	"slices"

	"github.com/attune-hpc/attune/controller/shm"
	"github.com/attune-hpc/attune/dmlib/abi"
	"github.com/attune-hpc/attune/internal/objfile"
)

// Slot is a GOT slot that leads to one of DMLib's hooks now.
type Slot struct {
	// Address of the slot, Hook where it leads, Old what it held.
	Address, Hook, Old uint64
	// RELRO says that its page is read-only.
	RELRO bool

	real   uint64         // the function behind the hook; 0: not known
	origin objfile.Origin // in an object that is loaded at bias
	bias   uint64
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
func findSlots(images []objfile.Image, hooks map[string]uint64, reals []realFunction) (slots []Slot) {
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
			slots = append(slots, Slot{
				Address: image.Address(slot.VirtualAddress), Hook: hooks[slot.Symbol], RELRO: slot.RELRO,
				real: behind[slot.Symbol], origin: slot.Origin, bias: image.Bias,
			})
		}
	}
	return slots
}
