// SPDX-License-Identifier: Apache-2.0

package flow

import (
	"encoding/binary"
	"iter"
	"slices"
	"sync"
	"sync/atomic"
)

// Aims tells quickly that nothing in an object looks like a way to an address of
// its code, as is the case for most of them. It takes an eighth of the code's size in
// memory, three times. Safe for concurrent use.
type Aims struct {
	near, far []aims // of code, by the distance: small numbers look like small distances
	pointers  []aims

	searches atomic.Int64 // of all code, so far
	once     sync.Once
	index    []aimIndex // of far ones, by part; made once it pays

	layouts sync.Map // of functions, by address
}

// layout is layoutOf, which takes milliseconds for large functions; nil forgets it.
func (a *Aims) layout(part Part) []placed {
	if a == nil {
		return layoutOf(part)
	}
	if all, ok := a.layouts.Load(part.Address); ok {
		return all.([]placed) //nolint:forcetypeassert // nothing else is stored
	}
	all := layoutOf(part)
	a.layouts.Store(part.Address, all)
	return all
}

// patientSearches is how many searches of all code cost as much as the index that
// spares them.
const patientSearches = 2

// aimIndex has where the bytes stand that aim at a part, by pages of what they aim at.
type aimIndex struct {
	start uint64   // of the part
	first []uint32 // by page: where its sources begin
	from  []uint32 // sources, as numbers of bytes in all of the text
}

// indexPage is how many bytes have their sources in one list.
const indexPage = 256

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

// aiming yields where the four bytes stand, in ascending order, that are the distance
// to an address between two, neither of them included.
func (a *Aims) aiming(text []Part, from, to uint64) iter.Seq[uint64] {
	switch {
	case a == nil:
		return aimingIn(text, from, to)
	case between(a.far, from, to):
		if a.searches.Add(1) > patientSearches {
			return a.fromIndex(text, from, to)
		}
		return aimingIn(text, from, to)
	case between(a.near, from, to):
		return aimingIn(within(text, from-min(from, nearAim), to+nearAim+4), from, to)
	}
	return func(func(uint64) bool) {}
}

// aimingIn is aiming among what is looked at byte by byte.
func aimingIn(text []Part, from, to uint64) iter.Seq[uint64] {
	return func(yield func(uint64) bool) {
		for _, p := range text {
			for i := 0; i+4 <= len(p.Code); i++ {
				if distanceFrom(p, i)-from-1 < to-from-1 && !yield(p.Address+uint64(i)) {
					return
				}
			}
		}
	}
}

// fromIndex is aiming by the index.
func (a *Aims) fromIndex(text []Part, from, to uint64) iter.Seq[uint64] {
	a.once.Do(func() { a.index = indexOf(text) })
	var found []uint64
	for i, x := range a.index {
		size := uint64(len(text[i].Code))
		first, last := max(from+1, x.start)-x.start, min(to, x.start+size)-min(x.start, to)
		for page := first / indexPage; page*indexPage < last; page++ {
			for _, n := range x.from[x.first[page]:x.first[page+1]] {
				p, offset := numbered(text, n)
				if distanceFrom(p, offset)-from-1 < to-from-1 {
					found = append(found, p.Address+uint64(offset))
				}
			}
		}
	}
	slices.Sort(found)
	return slices.Values(slices.Compact(found))
}

// indexOf makes the index of a text: all is counted first, and then put in its place.
func indexOf(text []Part) (index []aimIndex) {
	for _, target := range text {
		pages := len(target.Code)/indexPage + 1
		x := aimIndex{start: target.Address, first: make([]uint32, pages+1)}
		each := func(visit func(page uint64, number uint32)) {
			number := uint32(0)
			for _, p := range text {
				for i := 0; i+4 <= len(p.Code); i++ {
					at := distanceFrom(p, i) - target.Address
					if at < uint64(len(target.Code)) {
						visit(at/indexPage, number+uint32(i))
					}
				}
				number += uint32(len(p.Code))
			}
		}
		each(func(page uint64, _ uint32) { x.first[page+1]++ })
		for page := range pages {
			x.first[page+1] += x.first[page]
		}
		x.from = make([]uint32, x.first[pages])
		next := slices.Clone(x.first)
		each(func(page uint64, number uint32) {
			x.from[next[page]] = number
			next[page]++
		})
		index = append(index, x)
	}
	return index
}

// numbered finds a byte of the text.
func numbered(text []Part, number uint32) (Part, int) {
	for _, p := range text {
		if int(number) < len(p.Code) {
			return p, int(number)
		}
		number -= uint32(len(p.Code))
	}
	panic("a number beyond the text")
}

// pointed says whether a pointer may lead between two addresses; true where that
// is not known.
func (a *Aims) pointed(from, to uint64) bool { return a == nil || between(a.pointers, from, to) }
