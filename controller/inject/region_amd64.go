// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"encoding/binary"

	"github.com/attune-hpc/attune/dmlib/abi"
)

// The mapping: a page of code (dmlib/entry), another where it is to call other
// code, the data of region, and at its end the stack. It is readable and
// executable; the code's first act is to make the rest of it writable, for
// systems let nothing be both.
const (
	alignment = 64
	// stackBytes is for dlopen, which keeps paths and file headers on its
	// stack; a thread of its own has one of its own.
	stackBytes = 256 << 10

	// The image begins with the offsets of its first instruction, and of the
	// one behind the signal that it sends itself at its end.
	imageStart  = 0
	imageMarker = 4
)

// region is the content of the mapping; addresses are offsets until place.
type region struct {
	data    []byte // from offset 0
	entry   int    // offset of struct attune_entry, which ends the code
	request int    // offset of the attach request
	frame   int    // of the signal frame
	vectors int    // of the XSAVE area in it
	path    int
}

// reserve appends n zero bytes and returns their offset.
func (r *region) reserve(n int) int {
	r.data = append(r.data, make([]byte, (alignment-len(r.data)%alignment)%alignment)...)
	at := len(r.data)
	r.data = append(r.data, make([]byte, n)...)
	return at
}

func (r *region) put(content []byte) int {
	at := r.reserve(len(content))
	copy(r.data[at:], content)
	return at
}

// size is that of the whole mapping, bytes.
func (r *region) size() uint64 {
	return (uint64(len(r.data)) + stackBytes + pageBytes - 1) &^ (pageBytes - 1)
}

func (r *region) word(at int, value uint64)   { binary.LittleEndian.PutUint64(r.data[at:], value) }
func (r *region) number(at int, value uint32) { binary.LittleEndian.PutUint32(r.data[at:], value) }

// start and marker are the offsets that the image begins with.
func (r *region) start() uint64  { return uint64(binary.LittleEndian.Uint32(r.data[imageStart:])) }
func (r *region) marker() uint64 { return uint64(binary.LittleEndian.Uint32(r.data[imageMarker:])) }

// newRegion lays out what the call needs.
func (p *plan) newRegion(vectorBytes int) *region {
	r := &region{data: make([]byte, pageBytes, 4*pageBytes+len(p.encoded)+vectorBytes)}
	copy(r.data, p.image)
	if p.code != nil {
		copy(r.data[r.reserve(pageBytes):], p.code)
	}
	r.entry = r.reserve(abi.EntryBytes)
	r.path = r.put(append([]byte(p.options.Library), 0))
	r.request = r.put(p.encoded)
	r.frame = r.reserve(frameBytes)
	r.vectors = r.reserve(vectorBytes + vectorEnd)
	return r
}

// place fills in the addresses once it is known that the mapping is at base.
func (r *region) place(base uint64, p *plan, s state) {
	at := func(offset int) uint64 { return base + uint64(offset) }
	c := p.calls
	fields := map[int]uint64{
		abi.EntryBaseAt: base, abi.EntrySizeAt: r.size(), abi.EntryFrameAt: at(r.frame), abi.EntryRequestAt: at(r.request), abi.EntryPathAt: at(r.path),
		abi.EntryUnmapAt: c.unmap, abi.EntryCreateAt: c.create, abi.EntryAttributesAt: c.attributes, abi.EntrySetDetachedAt: c.setDetached,
		abi.EntrySetStackAt: c.setStack, abi.EntryOpenAt: c.open, abi.EntrySymbolAt: c.sym, abi.EntryMessageAt: c.message, abi.EntryAttachAt: p.library.attach,
	}
	if p.code != nil {
		fields[abi.EntryCodeAt] = at(pageBytes)
	}
	for field, value := range fields {
		r.word(r.entry+field, value)
	}
	r.number(r.entry+abi.EntryModeAt, c.mode)
	if p.library.fromMemory {
		r.number(r.entry+abi.EntryFromMemoryAt, 1)
	}
	r.number(r.entry+abi.EntryMillisecondsAt, uint32(controllerPatience.Milliseconds()))
	r.fillFrame(at(r.vectors), s)
}

// Offsets in a signal frame (struct ucontext of the kernel).
const (
	frameAltFlags = 24
	frameContext  = 40
	framePointer  = frameContext + 23*8
	frameMask     = frameContext + 32*8
	frameBytes    = 512

	ucVectors  = 1 // UC_FP_XSTATE
	ucSegments = 2 // UC_SIGCONTEXT_SS
	ucStrict   = 4 // UC_STRICT_RESTORE_SS

	vectorSoftware = 464 // software bytes of an XSAVE area
	vectorMagic1   = 0x46505853
	vectorMagic2   = 0x46505845
	vectorEnd      = 4 // bytes of the second one, behind the area
)

// fillFrame writes the frame that rt_sigreturn(2) restores the thread from if
// nobody else does.
func (r *region) fillFrame(vectors uint64, s state) {
	g := repeated(s.regs)
	f := r.frame
	r.word(f, ucVectors|ucSegments|ucStrict)
	// Invalid flags: the alternate signal stack stays what it is.
	r.number(f+frameAltFlags, 0x7fffffff)
	context := []uint64{
		g.R8, g.R9, g.R10, g.R11, g.R12, g.R13, g.R14, g.R15,
		g.Rdi, g.Rsi, g.Rbp, g.Rbx, g.Rdx, g.Rax, g.Rcx, g.Rsp, g.Rip, g.Eflags,
		g.Cs&0xffff | g.Ss&0xffff<<48,
	}
	for i, word := range context {
		r.word(f+frameContext+8*i, word)
	}
	r.word(f+framePointer, vectors)
	r.word(f+frameMask, s.mask)

	area := r.data[r.vectors:]
	copy(area, s.extra)
	features := binary.LittleEndian.Uint64(area[vectorSoftware:])
	n := uint32(len(s.extra))
	binary.LittleEndian.PutUint32(area[vectorSoftware:], vectorMagic1)
	binary.LittleEndian.PutUint32(area[vectorSoftware+4:], n+vectorEnd)
	binary.LittleEndian.PutUint64(area[vectorSoftware+8:], features)
	binary.LittleEndian.PutUint32(area[vectorSoftware+16:], n)
	binary.LittleEndian.PutUint32(area[n:], vectorMagic2)
}
