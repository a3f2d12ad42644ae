// SPDX-License-Identifier: Apache-2.0

package objfile

import (
	"cmp"
	"slices"
	"strings"
)

// Addresses knows the functions of a file by address.
type Addresses struct {
	functions []namedFunction // in ascending order
}

type namedFunction struct {
	start, end uint64 // end 0: no symbol tells
	name       string
}

// add takes in a function.
func (a *Addresses) add(s Symbol) {
	a.functions = append(a.functions, namedFunction{s.Value, s.Value + s.Size, s.Name})
}

// settle puts them in order, each address once and under its best name.
func (a *Addresses) settle() {
	slices.SortFunc(a.functions, func(a, b namedFunction) int {
		return cmp.Or(cmp.Compare(a.start, b.start), a.preferred(b))
	})
	a.functions = slices.CompactFunc(a.functions, func(a, b namedFunction) bool { return a.start == b.start })
}

// preferred orders the names of one function: that which people write comes first, and
// open before __open64.
func (a namedFunction) preferred(b namedFunction) int {
	reserved := func(f namedFunction) int { return len(f.name) - len(strings.TrimLeft(f.name, "_")) }
	mangled := strings.HasPrefix(a.name, "_Z") && strings.HasPrefix(b.name, "_Z")
	if !mangled {
		if order := cmp.Compare(reserved(a), reserved(b)); order != 0 {
			return order
		}
	}
	return cmp.Or(cmp.Compare(len(a.name), len(b.name)), cmp.Compare(a.name, b.name))
}

// Function returns the name of the function that holds a virtual address; false if no
// symbol tells.
func (a *Addresses) Function(address uint64) (name string, ok bool) {
	i, found := slices.BinarySearchFunc(a.functions, address, func(f namedFunction, address uint64) int { return cmp.Compare(f.start, address) })
	if !found {
		i--
	}
	if i < 0 {
		return "", false
	}
	f := a.functions[i]
	if address >= f.end && (f.end != f.start || address-f.start >= maxUnsized) {
		return "", false
	}
	return f.name, true
}

// maxUnsized is how far a function reaches whose size no symbol tells, as hand-written
// code leaves it.
const maxUnsized = 4096
