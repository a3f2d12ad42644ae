// SPDX-License-Identifier: Apache-2.0

package bpf

import (
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"
)

// ringGuard is RING_RECORD_MAX of include/ring.h: the longest record, and how
// far the ring's memory goes on behind its end.
const ringGuard = 1024

// recordRing is the reader's side of the ring of include/ring.h.
type recordRing struct {
	mu     sync.Mutex // guards all; held while records are taken out
	state  sharedArray[uprobesRing]
	bytes  []byte // nil: not open, or closed
	size   uint64
	closed uint64 // records lost until it was closed
}

// open maps a ring of size bytes.
func (r *recordRing) open(state, memory *ebpf.Map, size uint32) error {
	shared, err := mapArray[uprobesRing](state)
	if err != nil {
		return fmt.Errorf("map ring: %w", err)
	}
	bytes, err := unix.Mmap(memory.FD(), 0, int(size)+ringGuard, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return errors.Join(fmt.Errorf("map records: %w", err), shared.unmap())
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.state, r.bytes, r.size = shared, bytes, uint64(size)
	return nil
}

// lost is how many records found no room.
func (r *recordRing) lost() uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.bytes == nil {
		return r.closed
	}
	return atomic.LoadUint64(&r.state.elements[0].Lost)
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
	state := &r.state.elements[0]
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
	r.closed = atomic.LoadUint64(&r.state.elements[0].Lost)
	bytes := r.bytes
	r.bytes = nil
	return errors.Join(r.state.unmap(), unix.Munmap(bytes))
}

const (
	// ringWord is the first word of a record, which does not travel on.
	ringWord = 8
	// recordSize is that of a record without captures.
	recordSize = ringWord + wireSize
	// wireSize is that of a record, and of each continuation, as it travels:
	// struct attune_record.
	wireSize = 32

	recordContinuation = 1 << 3
	followShift        = 8
	stringCut          = 1 << 32
	kindString         = 5
)

// appendWire appends a record as it travels: what was captured becomes
// continuations of it, as dmlib/include/attune/program.h describes them.
func appendWire(to, record []byte) []byte {
	at := len(to)
	to = append(to, record[:wireSize]...)
	if len(record) == wireSize {
		return to
	}
	return appendCaptured(to, at, record[wireSize:])
}

// appendCaptured appends what was captured: number of captures, kinds, a word
// for each of measure.MaxCaptures, strings.
func appendCaptured(to []byte, at int, captured []byte) []byte {
	order := binary.LittleEndian
	count, kinds := order.Uint32(captured), order.Uint32(captured[4:])
	values, strings := captured[8:], captured[8+8*maxCaptures:]
	w := wordWriter{to: to, kinds: kinds}
	for c := range min(count, maxCaptures) {
		word := order.Uint64(values[8*c:])
		w.add(word)
		if kinds>>(4*c)&0xf != kindString {
			continue
		}
		for left := int64(uint32(word)); left > 0 && len(strings) >= 8; left -= 8 {
			last := order.Uint64(strings)
			if left < 8 {
				last &= 1<<(8*left) - 1 // the zero, and what an earlier try left
			}
			w.add(last)
			strings = strings[8:]
		}
	}
	flags := order.Uint16(w.to[at+10:])
	order.PutUint16(w.to[at+10:], flags|uint16(w.units)<<followShift)
	return w.to
}

// wordWriter appends words as continuations, three each.
type wordWriter struct {
	to    []byte
	kinds uint32
	words int
	units int
}

func (w *wordWriter) add(word uint64) {
	order := binary.LittleEndian
	slot := w.words % 3
	if slot == 0 {
		w.to = append(w.to, make([]byte, wireSize)...)
		unit := w.to[len(w.to)-wireSize:]
		order.PutUint16(unit[10:], recordContinuation)
		if w.units == 0 {
			order.PutUint32(unit[12:], w.kinds)
		}
		w.units++
	}
	unit := w.to[len(w.to)-wireSize:]
	order.PutUint64(unit[[...]int{0, 16, 24}[slot]:], word)
	w.words++
}
