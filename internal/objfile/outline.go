// SPDX-License-Identifier: Apache-2.0

package objfile

import (
	"cmp"
	"slices"
	"strings"

	"github.com/attune-hpc/attune/internal/bounded"
)

// Outline is what a file's symbol tables say about where functions begin.
type Outline struct {
	functions Frames              // by symbols, each address once
	cold      map[string][]Symbol // seldom executed parts by the name of the function
	stubs     []table             // sections of the PLT, by address
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
	o.functions = append(o.functions, Frame{Start: s.Value, End: s.Value + s.Size, Entry: true})
	return nil
}

// settle puts the functions in order, each with the greatest of its sizes.
func (o *Outline) settle() {
	slices.SortFunc(o.functions, func(a, b Frame) int { return cmp.Or(cmp.Compare(a.Start, b.Start), cmp.Compare(b.End, a.End)) })
	o.functions = slices.CompactFunc(o.functions, func(a, b Frame) bool { return a.Start == b.Start })
	o.functions.settle()
}

// Begins says whether a function, or a stub of the PLT, begins at a virtual
// address.
func (o *Outline) Begins(address uint64) bool {
	return o.BeginsIn(address, address+1) || o.Stub(address)
}

// Stub says whether an address is in the PLT.
func (o *Outline) Stub(address uint64) bool {
	return slices.ContainsFunc(o.stubs, func(stub table) bool {
		return address >= stub.offset && address-stub.offset < stub.size
	})
}

// Size is the size of the function that begins at an address; 0 if no symbol
// tells.
func (o *Outline) Size(address uint64) uint64 {
	if !o.BeginsIn(address, address+1) {
		return 0
	}
	return o.functions[o.functions.before(address)].End - address
}

// Cold returns the parts of a function that lie elsewhere because they are
// seldom executed, as far as symbols tell.
func (o *Outline) Cold(function Symbol) []Symbol { return o.cold[function.Name] }

// Between returns the functions that have something between two addresses, as
// far as symbols tell their size.
func (o *Outline) Between(start, end uint64) Frames { return o.functions.Between(start, end) }

// BeginsIn says whether a function begins between two addresses, the first one
// included.
func (o *Outline) BeginsIn(start, end uint64) bool {
	i := o.functions.before(start)
	return i < len(o.functions) && o.functions[i].Start < end
}
