// SPDX-License-Identifier: Apache-2.0

package patch

import "encoding/binary"

// Aims tells quickly that nothing in an object looks like a way to an address of
// its code, as is the case for nearly all of them. It takes an eighth of the
// code's size in memory, three times. Safe for concurrent use.
type Aims struct {
	near, far []aims // of code, by the distance: small numbers look like small distances
	pointers  []aims
}

// nearAim is the greatest distance that is called near, bytes.
const nearAim = 16 << 10

// aims has a bit for each byte of a part at which something may aim.
type aims struct {
	start, length uint64
	bits          []uint64
}

// NewAims looks at all that is loaded of an object, of which text is the code.
func NewAims(loaded, text []Part) *Aims {
	a := &Aims{near: aimsAt(text), far: aimsAt(text), pointers: aimsAt(text)}
	for _, p := range text {
		for i := 0; i+4 <= len(p.Code); i++ {
			to, from := distanceFrom(p, i), p.Address+uint64(i)
			if to-from+nearAim <= 2*nearAim {
				mark(a.near, to)
			} else {
				mark(a.far, to)
			}
		}
	}
	for _, p := range loaded {
		for i := 0; i+8 <= len(p.Code); i += 4 {
			mark(a.pointers, binary.LittleEndian.Uint64(p.Code[i:]))
		}
	}
	return a
}

// distanceFrom is where four bytes of code lead if they are the distance from
// their end.
func distanceFrom(p Part, i int) uint64 {
	return p.Address + uint64(i) + 4 + uint64(int64(int32(binary.LittleEndian.Uint32(p.Code[i:]))))
}

func aimsAt(text []Part) (all []aims) {
	for _, p := range text {
		length := uint64(len(p.Code))
		all = append(all, aims{start: p.Address, length: length, bits: make([]uint64, length/64+1)})
	}
	return all
}

func mark(all []aims, address uint64) {
	for _, a := range all {
		if at := address - a.start; at < a.length {
			a.bits[at/64] |= 1 << (at % 64)
		}
	}
}

// between says whether an address between two is marked, neither of them
// included; of what is no code, always.
func between(all []aims, from, to uint64) bool {
	for address := from + 1; address < to; address++ {
		known := false
		for _, a := range all {
			if at := address - a.start; at < a.length {
				known = true
				if a.bits[at/64]>>(at%64)&1 != 0 {
					return true
				}
			}
		}
		if !known {
			return true
		}
	}
	return false
}

// search returns the code that has to be looked at for what leads between two
// addresses: all of it where there are no Aims.
func (s Surroundings) search(from, to uint64) []Part {
	switch {
	case s.Aims == nil || between(s.Aims.far, from, to):
		return s.Text
	case between(s.Aims.near, from, to):
		return within(s.Text, from-min(from, nearAim), to+nearAim+4)
	}
	return nil
}

// within is what of parts lies between two addresses.
func within(parts []Part, start, end uint64) (some []Part) {
	for _, p := range parts {
		first, last := max(start, p.Address), min(end, p.Address+uint64(len(p.Code)))
		if first < last {
			some = append(some, Part{Address: first, Code: p.Code[first-p.Address : last-p.Address]})
		}
	}
	return some
}

// pointed says whether a pointer may lead between two addresses; true where that
// is not known.
func (a *Aims) pointed(from, to uint64) bool { return a == nil || between(a.pointers, from, to) }
