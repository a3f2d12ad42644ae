// SPDX-License-Identifier: Apache-2.0

package tracer

import (
	"encoding/binary"
	"math/bits"
)

const (
	// maxXstate is more than any processor's vector registers take, bytes.
	maxXstate = 16 << 10
	// legacyBytes are the first two components of an XSAVE area and its header.
	legacyBytes = 576
	// tileData is the component that a thread has no room for in the kernel before it
	// first uses it (AMX).
	tileData = 18

	vectorSoftware = 464 // software bytes of an XSAVE area
	vectorPresent  = 512 // which components are not in their initial state
	vectorMagic1   = 0x46505853
	vectorMagic2   = 0x46505845
	vectorEnd      = 4 // bytes of the second one, behind the area
)

// componentEnds is where each component ends in an XSAVE area in the standard format, as
// the processor tells; 0: it has no such component, or one of the first two.
type componentEnds [64]uint32

// allComponents are those that the processor has, whether the kernel uses them or not.
const allComponents = ^uint64(0)

// cpuid executes the instruction of that name.
func cpuid(leaf, sub uint32) (eax, ebx uint32)

func newComponentEnds() (ends componentEnds) {
	const leaf = 0xd
	if last, _ := cpuid(0, 0); last < leaf {
		return ends
	}
	has, _ := cpuid(leaf, 0) // of those up to 31: no processor has others
	for has &^= 3; has != 0; has &= has - 1 {
		i := bits.TrailingZeros32(has)
		size, offset := cpuid(leaf, uint32(i))
		ends[i] = offset + size
	}
	return ends
}

// bytes is the size of an area with some components.
func (e *componentEnds) bytes(features uint64) int {
	end := uint32(legacyBytes)
	for ; features != 0; features &= features - 1 {
		end = max(end, e[bits.TrailingZeros64(features)])
	}
	return int(end)
}

// putVectors writes an XSAVE area as the kernel has it in a signal frame. rt_sigreturn(2)
// restores it whole only if it is as large as the kernel's own of that thread, which has
// room for tiles from their first use on; else, without an error, only what SSE knows.
// Older kernels believe the size that is written there if theirs is not smaller, newer
// ones (6.8) look for the end's mark where theirs ends. Whether a thread without tiles has
// used them before nobody can tell: the smaller size and a mark behind each suit both.
func putVectors(area, extra []byte, ends *componentEnds) {
	copy(area, extra)
	order := binary.LittleEndian
	features := order.Uint64(area[vectorSoftware:])
	size := len(extra)
	order.PutUint32(area[size:], vectorMagic2)
	if features&^order.Uint64(area[vectorPresent:])&(1<<tileData) != 0 {
		size = ends.bytes(features &^ (1 << tileData))
		order.PutUint32(area[size:], vectorMagic2)
	}
	order.PutUint32(area[vectorSoftware:], vectorMagic1)
	order.PutUint32(area[vectorSoftware+4:], uint32(size+vectorEnd))
	order.PutUint64(area[vectorSoftware+8:], features)
	order.PutUint32(area[vectorSoftware+16:], uint32(size))
}
