// SPDX-License-Identifier: Apache-2.0

package flow

import (
	"encoding/binary"
	"fmt"
	"slices"
	"sync"
)

// Aims knows all places of an object that look like a way to an address of its code.
// It is made by one look at each byte, and takes less memory than the code. Safe for
// concurrent use.
type Aims struct {
	// distances are four bytes of code, pointers eight bytes of whatever is loaded.
	distances, pointers aims

	layouts sync.Map // by stretch
}

// stretch is where code begins, and how many bytes it has.
type stretch struct {
	start  uint64
	length int
}

// layout is layoutOf, which takes milliseconds for large functions.
func (a *Aims) layout(part Part) layout {
	key := stretch{part.Address, len(part.Code)}
	if known, ok := a.layouts.Load(key); ok {
		return known.(layout) //nolint:forcetypeassert // nothing else is stored
	}
	fresh := layoutOf(part)
	a.layouts.Store(key, fresh)
	return fresh
}

// aims are places that aim at a text, in a list for each few bytes of the text.
// Addresses are numbers of bytes among those of all parts.
type aims struct {
	from, text []Part
	latest     []uint32 // by page: an index in places; 0: none
	places     []place
	most       int // more of them are left out
}

// place aims at a byte.
type place struct {
	from, to uint32
	before   uint32 // another one that aims at the same page
}

const (
	// aimPage is how many bytes of text have one list.
	aimPage = 64
	// mostAims is of how many bytes at most one is a place, and a few more. In programs it
	// is one of 18 and more; in what is made to be hard each could be.
	mostAims  = 4
	usualAims = 16
)

// NewAims looks at all that is loaded of an object, of which text is the code, no
// more than 4 GB. It is an error if more of it aims at the code than a program has.
func NewAims(loaded, text []Part) (*Aims, error) {
	a := &Aims{distances: aimsOf(text, text), pointers: aimsOf(loaded, text)}
	first := uint32(0)
	for _, p := range text {
		may := uint8(anyBefore) // of what is before the first byte nothing is known
		for i := range max(3, len(p.Code)) - 3 {
			if may != 0 {
				if to, ok := number(text, distanceFrom(p, i)); ok {
					a.distances.add(first+uint32(i), to)
				}
			}
			may = last[p.Code[i]]
			if i > 0 {
				may &= secondLast[p.Code[i-1]]
			}
		}
		first += uint32(len(p.Code))
	}
	first = 0
	for _, p := range loaded {
		for i := 0; i+8 <= len(p.Code); i += 4 {
			if to, ok := number(text, binary.LittleEndian.Uint64(p.Code[i:])); ok {
				a.pointers.add(first+uint32(i), to)
			}
		}
		first += uint32(len(p.Code))
	}
	if len(a.distances.places) > a.distances.most {
		return nil, fmt.Errorf("more than one of %d bytes of its code look like ways to other code", mostAims)
	}
	return a, nil
}

// distanceFrom is where four bytes of code lead if they are the distance from
// their end.
func distanceFrom(p Part, i int) uint64 {
	return p.Address + uint64(i) + 4 + uint64(int64(int32(binary.LittleEndian.Uint32(p.Code[i:]))))
}

// A distance of four bytes stands right behind the opcode of call, jmp, jcc or xbegin, or
// behind a ModRM byte with mode 0 and register 5, whatever else an instruction has (Intel
// SDM vol. 2, 2.2.1.6). last has bits for what a byte can be the last one of, secondLast
// for what it can be the second last of, or leaves open.
const (
	oneByte   = 1 << iota // call, jmp, ModRM
	jcc                   // 0f 80 to 0f 8f
	xbegin                // c7 f8
	anyBefore = oneByte | jcc | xbegin
)

var last, secondLast = func() (last, secondLast [256]uint8) {
	for b := range last {
		secondLast[b] = oneByte
		switch {
		case b&0xc7 == 0x05, b == 0xe8, b == 0xe9:
			last[b] = oneByte
		case b&0xf0 == 0x80:
			last[b] = jcc
		case b == 0xf8:
			last[b] = xbegin
		}
	}
	secondLast[0x0f] |= jcc
	secondLast[0xc7] |= xbegin
	return last, secondLast
}()

func aimsOf(from, text []Part) aims {
	return aims{
		from: from, text: text, latest: make([]uint32, size(text)/aimPage+1),
		places: make([]place, 1, size(text)/usualAims+1), // none has the index 0
		most:   size(from)/mostAims + aimPage,
	}
}

// size is how many bytes parts have.
func size(parts []Part) (n int) {
	for _, p := range parts {
		n += len(p.Code)
	}
	return n
}

// add notes that a byte aims at another one.
func (a *aims) add(from, to uint32) {
	if len(a.places) > a.most {
		return
	}
	latest := &a.latest[to/aimPage]
	a.places = append(a.places, place{from, to, *latest})
	*latest = uint32(len(a.places) - 1)
}

// between returns the addresses of the places that aim at an address between two,
// neither of them included, in ascending order.
func (a *aims) between(from, to uint64) (found []uint64) {
	for address := from + 1; address < to; address++ {
		aim, ok := number(a.text, address)
		if !ok {
			continue
		}
		for i := a.latest[aim/aimPage]; i != 0; i = a.places[i].before {
			if a.places[i].to == aim {
				found = append(found, numbered(a.from, a.places[i].from))
			}
		}
	}
	slices.Sort(found)
	return found
}

// number is that of an address among all bytes of parts.
func number(parts []Part, address uint64) (n uint32, ok bool) {
	for _, p := range parts {
		if p.Holds(address) {
			return n + uint32(address-p.Address), true
		}
		n += uint32(len(p.Code))
	}
	return 0, false
}

// numbered is the address of a byte of parts.
func numbered(parts []Part, number uint32) uint64 {
	for _, p := range parts {
		if int(number) < len(p.Code) {
			return p.Address + uint64(number)
		}
		number -= uint32(len(p.Code))
	}
	panic("a number beyond the parts")
}

// LedTo says whether code outside of parts, or a pointer, leads to an address:
// as a call, a jump or an address that is taken.
func (a *Aims) LedTo(address uint64, parts []Part) bool {
	byCode := slices.ContainsFunc(a.distances.between(address-1, address+1), func(at uint64) bool { return !anyHolds(parts, at) })
	return byCode || len(a.pointers.between(address-1, address+1)) > 0
}
