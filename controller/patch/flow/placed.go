// SPDX-License-Identifier: Apache-2.0

package flow

import (
	"cmp"
	"slices"
)

// placed is an instruction of a function, as far as [accidental] needs it.
type placed struct {
	at       uint64
	length   uint8
	relative uint8 // where its distance of four bytes is; 0: it has none
	vector   bool
}

// layoutOf lists the instructions of a function; nil if they are not understood, or a
// branch leads into one.
func layoutOf(part Part) (all []placed) {
	decoded, err := instructions(part)
	if err != nil || !consistent(part, decoded) {
		return nil
	}
	for _, i := range decoded {
		p := placed{at: i.At, length: uint8(i.Len), vector: vectorLength(i.Code) > 0}
		if i.PCRel == 4 {
			p.relative = uint8(i.PCRelOff)
		}
		all = append(all, p)
	}
	return all
}

// accidental says that four bytes of code are not the distance that they look
// like: they lie across two instructions, or are another operand. That is known
// only of a function that is decoded from its beginning, and in which no branch
// leads into an instruction.
func accidental(all []placed, at uint64) bool {
	if all == nil {
		return false
	}
	i, found := slices.BinarySearchFunc(all, at, func(p placed, at uint64) int { return cmp.Compare(p.at, at) })
	if !found {
		i--
	}
	switch p := all[i]; {
	case at+4 > p.at+uint64(p.length):
		return true
	case p.vector:
		return false // its operands are not decoded
	default:
		return p.relative == 0 || at != p.at+uint64(p.relative)
	}
}
