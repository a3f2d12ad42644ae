// SPDX-License-Identifier: Apache-2.0

package objfile

import (
	"slices"
	"strings"

	"github.com/attune-hpc/attune/internal/bounded"
)

// Outline is what a file's symbol tables say about where functions begin.
type Outline struct {
	begins map[uint64]uint64   // sizes of functions by address
	cold   map[string][]Symbol // seldom executed parts by the name of the function
	stubs  []table             // sections of the PLT, by address
}

// add takes in a symbol. GCC and clang name the part of f that is seldom
// executed f.cold, f.cold.0 and so on.
func (o *Outline) add(s Symbol, names *bounded.Work) error {
	function, _, cold := strings.Cut(s.Name, ".cold")
	if cold {
		const entry = 256 // what a Symbol takes beside its name
		o.cold[function] = append(o.cold[function], s)
		return names.Spend(entry + len(s.Name))
	}
	o.begins[s.Value] = max(s.Size, o.begins[s.Value])
	return nil
}

// Begins says whether a function, or a stub of the PLT, begins at a virtual
// address.
func (o *Outline) Begins(address uint64) bool {
	_, begins := o.begins[address]
	return begins || o.Stub(address)
}

// Stub says whether an address is in the PLT.
func (o *Outline) Stub(address uint64) bool {
	return slices.ContainsFunc(o.stubs, func(stub table) bool {
		return address >= stub.offset && address-stub.offset < stub.size
	})
}

// Size is the size of the function that begins at an address; 0 if no symbol
// tells.
func (o *Outline) Size(address uint64) uint64 { return o.begins[address] }

// Cold returns the parts of a function that lie elsewhere because they are
// seldom executed, as far as symbols tell.
func (o *Outline) Cold(function Symbol) []Symbol { return o.cold[function.Name] }

// Between returns the functions that have something between two addresses, as
// far as symbols tell their size.
func (o *Outline) Between(start, end uint64) (some Frames) {
	for address, size := range o.begins {
		if address < end && start < address+size {
			some = append(some, Frame{Start: address, End: address + size, Entry: true})
		}
	}
	return some
}

// BeginsIn says whether a function begins between two addresses, the first one
// included.
func (o *Outline) BeginsIn(start, end uint64) bool {
	for address := range o.begins {
		if address >= start && address < end {
			return true
		}
	}
	return false
}
