// SPDX-License-Identifier: Apache-2.0

package flow

import "slices"

// Part is a stretch of a function's code: all of it, or what the compiler put
// elsewhere because it is seldom executed (NAME.cold).
type Part struct {
	// Address of the first byte, in whatever numbering.
	Address uint64
	Code    []byte
}

// Holds says whether an address is one of the part's.
func (p Part) Holds(address uint64) bool {
	return address >= p.Address && address-p.Address < uint64(len(p.Code))
}

// anyHolds says whether an address is in one of the parts.
func anyHolds(parts []Part, address uint64) bool {
	return slices.ContainsFunc(parts, func(p Part) bool { return p.Holds(address) })
}

// anyTouches says whether a part has something between two addresses.
func anyTouches(parts []Part, start, end uint64) bool {
	return slices.ContainsFunc(parts, func(p Part) bool {
		return p.Address < end && start < p.Address+uint64(len(p.Code))
	})
}

// CodeAt is what a part has from an address on; nil if none holds it.
func CodeAt(parts []Part, address uint64) []byte {
	for _, p := range parts {
		if p.Holds(address) {
			return p.Code[address-p.Address:]
		}
	}
	return nil
}
