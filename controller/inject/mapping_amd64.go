// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"encoding/binary"
	"time"

	"github.com/attune-hpc/attune/controller/inject/tracer"
	"github.com/attune-hpc/attune/dmlib/abi"
)

// job is what a borrowed thread executes by the image of dmlib/entry: code, or else what
// loads DMLib and attaches.
type job struct {
	image   []byte
	code    []byte // a function that is called; nil: DMLib is loaded
	calls   calls
	attach  uint64 // attune_dm_attach where it is there already; else 0
	path    string // DMLib's
	bytes   bool   // the process opens a file for the library's bytes, rather than the path
	request []byte // of attune_dm_attach
}

// The mapping: a page of code (dmlib/entry), another where it is to call other
// code, the data of region, and at its end the stack. It is readable and
// executable; the code's first act is to make the rest of it writable, for
// systems let nothing be both.
const (
	alignment = 64 // of vector registers in memory
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

// word and number write one of 64 and 32 bits.
func (r *region) word(at int, value uint64)   { binary.LittleEndian.PutUint64(r.data[at:], value) }
func (r *region) number(at int, value uint32) { binary.LittleEndian.PutUint32(r.data[at:], value) }

// start and marker are the offsets that the image begins with.
func (r *region) start() uint64  { return uint64(binary.LittleEndian.Uint32(r.data[imageStart:])) }
func (r *region) marker() uint64 { return uint64(binary.LittleEndian.Uint32(r.data[imageMarker:])) }

// controllerPatience is how long what runs in the process waits for us to fill
// its files, and to read its answer.
const controllerPatience = 2 * time.Second

// newRegion lays out what a job needs in a borrowed thread.
func newRegion(j *job, vectorBytes int) *region {
	r := &region{data: make([]byte, pageBytes, 4*pageBytes+len(j.request)+vectorBytes)}
	copy(r.data, j.image)
	if j.code != nil {
		copy(r.data[r.reserve(pageBytes):], j.code)
	}
	r.entry = r.reserve(abi.EntryBytes)
	r.path = r.put(append([]byte(j.path), 0))
	r.request = r.put(j.request)
	r.frame = r.reserve(tracer.FrameBytes)
	r.vectors = r.reserve(vectorBytes)
	return r
}

// place fills in the addresses once it is known that the mapping is at base, and the
// frame that the thread restores itself from if nobody else does.
func (r *region) place(base uint64, j *job, thread *tracer.Borrowed) {
	at := func(offset int) uint64 { return base + uint64(offset) }
	c := &j.calls
	fields := map[int]uint64{
		abi.EntryBaseAt: base, abi.EntrySizeAt: r.size(), abi.EntryFrameAt: at(r.frame), abi.EntryRequestAt: at(r.request), abi.EntryPathAt: at(r.path),
		abi.EntryUnmapAt: c.unmap, abi.EntryCreateAt: c.create, abi.EntryAttributesAt: c.attributes, abi.EntrySetDetachedAt: c.setDetached,
		abi.EntrySetStackAt: c.setStack, abi.EntryOpenAt: c.open, abi.EntrySymbolAt: c.sym, abi.EntryMessageAt: c.message, abi.EntryAttachAt: j.attach,
	}
	if j.code != nil {
		fields[abi.EntryCodeAt] = at(pageBytes)
	}
	for field, value := range fields {
		r.word(r.entry+field, value)
	}
	r.number(r.entry+abi.EntryModeAt, c.mode)
	if j.bytes {
		r.number(r.entry+abi.EntryFromMemoryAt, 1)
	}
	r.number(r.entry+abi.EntryMillisecondsAt, uint32(controllerPatience.Milliseconds()))
	thread.PutFrame(r.data[r.frame:], r.data[r.vectors:], at(r.vectors))
}

// entryAnswer is what the process has said so far.
type entryAnswer struct {
	state, step     uint32
	errno           int32
	thread          int // as the process numbers it
	memory, library int // descriptors
	text            uint64
	value           uint64 // that a call returned
}

func (a entryAnswer) started() bool { return a.state != 0 }

// decodeEntry reads the answer from a whole structure.
func decodeEntry(b []byte) entryAnswer {
	order := binary.LittleEndian
	number := func(at int) int { return int(int32(order.Uint32(b[at:]))) }
	return entryAnswer{
		state: order.Uint32(b[abi.EntryStateAt:]), step: order.Uint32(b[abi.EntryStepAt:]),
		errno: int32(order.Uint32(b[abi.EntryErrorAt:])), thread: number(abi.EntryThreadAt),
		memory: number(abi.EntryMemoryAt), library: number(abi.EntryLibraryAt),
		text: order.Uint64(b[abi.EntryTextAt:]), value: order.Uint64(b[abi.EntryValueAt:]),
	}
}
