// SPDX-License-Identifier: Apache-2.0

package uprobe

import (
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/controller/bpf"
	"github.com/attune-hpc/attune/controller/capture"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// ringGuard is RING_RECORD_MAX of include/ring.h: the longest record, and how
// far the ring's memory goes on behind its end.
const ringGuard = 1024

// recordRing is the reader's side of the ring of include/ring.h.
type recordRing struct {
	mu     sync.Mutex // guards all; held while records are taken out
	state  bpf.SharedArray[uprobesRing]
	bytes  []byte // nil: not open, or closed
	size   uint64
	closed uint64 // records lost until it was closed
}

// open maps a ring of size bytes.
func (r *recordRing) open(state, memory *ebpf.Map, size uint32) error {
	shared, err := bpf.MapArray[uprobesRing](state)
	if err != nil {
		return fmt.Errorf("map ring: %w", err)
	}
	bytes, err := unix.Mmap(memory.FD(), 0, int(size)+ringGuard, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return errors.Join(fmt.Errorf("map records: %w", err), shared.Unmap())
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.state, r.bytes, r.size = shared, bytes, uint64(size)
	return nil
}

// lost is how many records found no room, and calls lost an end.
func (r *recordRing) lost() uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.bytes == nil {
		return r.closed
	}
	return atomic.LoadUint64(&r.state.Elements[0].Lost)
}

// read hands over up to limit records, each without its first word, to take,
// which must not keep them nor call the ring. It returns how many there were,
// and how many the ring can hold. An error means that the ring was damaged:
// nothing more can be read. A closed ring is empty.
func (r *recordRing) read(limit int, take func(process uint32, record []byte)) (n, most int, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.bytes == nil {
		return 0, 0, nil
	}
	most = int(r.size / recordSize)
	state := &r.state.Elements[0]
	tail := state.Tail
	defer func() { atomic.StoreUint64(&state.Tail, tail) }()
	for ; n < limit; n++ {
		at := tail & (r.size - 1)
		word := atomic.LoadUint64((*uint64)(unsafe.Pointer(&r.bytes[at])))
		length := uint64(uint32(word))
		switch {
		case word == 0: // not written yet
			return n, most, nil
		case length < recordSize || length > ringGuard || length%8 != 0:
			return n, most, fmt.Errorf("uprobe record of %d bytes", length)
		}
		record := r.bytes[at : at+length]
		take(uint32(word>>32), record[ringWord:])
		clear(record)
		tail += length
	}
	return n, most, nil
}

// close must be the last that is done with the ring but for lost.
func (r *recordRing) close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.bytes == nil {
		return nil
	}
	r.closed = atomic.LoadUint64(&r.state.Elements[0].Lost)
	bytes := r.bytes
	r.bytes = nil
	return errors.Join(r.state.Unmap(), unix.Munmap(bytes))
}

const (
	// ringWord is the first word of a record, which does not travel on.
	ringWord = 8
	// recordSize is that of a record without captures.
	recordSize = ringWord + attunev1.RecordSize
)

// maxCaptures is ATTUNE_CAPTURES of dmlib/include/attune/program.h.
const maxCaptures = capture.MaxCaptures

// capturedSize is that of a record with captures, but for the strings.
const capturedSize = int(unsafe.Offsetof(uprobesCapturedRecord{}.Strings))

// recordBytes is what a record of a program takes in the ring at most.
func recordBytes(program capture.Program) uint32 {
	if program.Empty() {
		return recordSize
	}
	bytes := capturedSize
	for _, c := range program.Captures {
		bytes += (c.Limit + 7) &^ 7
	}
	const overhang = 8 // the byte that tells a cut string, and the zero
	return uint32(bytes + overhang)
}

// appendWire appends a record as it travels: what was captured becomes
// continuations of it.
func appendWire(to, record []byte) []byte {
	to = append(to, record[:attunev1.RecordSize]...)
	if len(record) == attunev1.RecordSize {
		return to
	}
	return appendCaptured(to, record[attunev1.RecordSize:])
}

// appendCaptured appends what was captured: number of captures, kinds, a word
// for each of capture.MaxCaptures, strings.
func appendCaptured(to, captured []byte) []byte {
	order := binary.LittleEndian
	count, kinds := order.Uint32(captured), order.Uint32(captured[4:])
	values, strings := captured[8:], captured[8+8*maxCaptures:]
	w := attunev1.WriteCaptured(to, kinds)
	for c := range min(count, maxCaptures) {
		word := order.Uint64(values[8*c:])
		w.Word(word)
		if attunev1.CapturedKind(kinds>>(4*c)&0xf) != attunev1.CapturedString {
			continue
		}
		for left := int64(uint32(word)); left > 0 && len(strings) >= 8; left -= 8 {
			last := order.Uint64(strings)
			if left < 8 {
				last &= 1<<(8*left) - 1 // the zero, and what an earlier try left
			}
			w.Word(last)
			strings = strings[8:]
		}
	}
	return w.Finish()
}
