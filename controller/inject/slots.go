// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"errors"
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

	name    string // of the function
	real    uint64 // the function behind the hook; 0: not known
	unbound uint64 // what the slot holds until the loader has bound it; 0: calls may go elsewhere
}

// realFunction stands behind a hook.
type realFunction struct {
	name    string
	address uint64
}

// definers are the objects that define functions which hooks stand before, by name.
type definers map[string]*defined

type defined struct {
	addresses []uint64 // without the program's; 0: it is chosen when it is called
	libc      bool     // a part of the C library is among them
	others    int      // and so many others
}

// findDefiners finds who defines the functions of hooks, and of those that are led to on
// demand; nil where an object cannot be read, which may define some.
func findDefiners(pid int, images []objfile.Image, hooks map[string]uint64) definers {
	names := slices.Collect(maps.Keys(hooks))
	for _, h := range shm.Hooks() {
		if h.Led() {
			names = append(names, h.Name)
		}
	}
	found := make(definers)
	for _, image := range images {
		if image.Matches("libattune-dm*") || image.IsLoader() {
			continue
		}
		file, err := image.Open()
		if err != nil {
			return nil
		}
		for _, name := range names {
			if s, err := file.SymbolOf(name, objfile.Function); err == nil && isExported(s) {
				found.add(name, image, s, isProgram(pid, image))
			}
		}
		file.Close()
	}
	return found
}

func (d definers) add(name string, image objfile.Image, s objfile.Symbol, program bool) {
	at := d[name]
	if at == nil {
		at = new(defined)
		d[name] = at
	}
	if image.IsLibc() {
		at.libc = true
	} else {
		at.others++
	}
	switch {
	case program: // whose functions no hook stands before
	case s.IFunc():
		at.addresses = append(at.addresses, 0)
	default:
		at.addresses = append(at.addresses, image.Address(s.Value))
	}
}

// reals are the functions behind the hooks. One that several objects define is left out:
// DMLib, inside, knows their order.
func (d definers) reals() (reals []realFunction) {
	for name, at := range d {
		if len(at.addresses) == 1 && at.addresses[0] != 0 && len(name) < abi.AttachName {
			reals = append(reals, realFunction{name, at.addresses[0]})
		}
	}
	return reals
}

// alone says whether all calls by a name go to the function behind its hook.
func (d definers) alone(name string) bool {
	at := d[name]
	return at != nil && (at.libc && at.others == 0 || !at.libc && at.others == 1)
}

// findSlots finds the GOT slots of all objects that lead to functions which
// DMLib hooks. An object whose file cannot be read any more keeps its calls.
func findSlots(images []objfile.Image, hooks map[string]uint64, d definers) (slots []hookable) {
	behind := make(map[string]uint64)
	for _, r := range d.reals() {
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
			s := hookable{shm.Slot{
				Address: image.Address(slot.VirtualAddress), To: hooks[slot.Symbol], RELRO: slot.RELRO,
				Origin: slot.Origin, Bias: image.Bias,
			}, slot.Symbol, behind[slot.Symbol], 0}
			if slot.Origin.Initial != 0 && d.alone(slot.Symbol) {
				s.unbound = slot.Origin.Initial + image.Bias
			}
			slots = append(slots, s)
		}
	}
	return slots
}

// errElsewhere says that calls through a slot go to another function than a hook would.
var errElsewhere = errors.New("its calls go to another function of that name")

// goesTo refuses a slot that holds a value, unless its calls go to the function behind its
// hook, or it is still to be relocated.
func (s *hookable) goesTo(value, behind uint64) error {
	if value != behind && value != s.unbound && value != s.To && s.Origin.Relocated(value, s.Bias) || value == 0 {
		return errElsewhere
	}
	return nil
}
