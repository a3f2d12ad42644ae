// SPDX-License-Identifier: Apache-2.0

package shm

import (
	"math/bits"

	"github.com/attune-hpc/attune/dmlib/abi"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// BatchRecords is the most records, their continuations included, that Drain
// hands out at once.
const BatchRecords = 4096

const (
	recordWords = attunev1.RecordSize / 8

	pointMask  = 1<<16 - 1
	flagsShift = 16
	flagsMask  = pointMask << flagsShift
	tidShift   = 32
)

// Drained tells what one Drain did. All counts are since the Drain before.
type Drained struct {
	// Received is the number of records handed out.
	Received uint64
	// Continuations is the number of units behind them that are none.
	Continuations uint64
	// Lost is the number of records that DMLib dropped, because a ring was
	// full or a thread had none.
	Lost uint64
	// Unmapped is the number of records of points that are not enabled any more.
	Unmapped uint64
	// Corrupt is the number of records with an impossible point.
	Corrupt uint64
	// CorruptSlots is the number of slots found unusable in this Drain. They
	// stay unused for the life of the memory.
	CorruptSlots int
	// FewSlotsFree asks for a Reclaim: less than a quarter is left.
	FewSlotsFree bool
}

// batch is the buffer that records pass through. It belongs to one goroutine.
type batch struct {
	buffer  []uint64 // BatchRecords records
	fill    int      // words in use
	first   int      // word where the records of the slot begin that is being read
	scale   Scale
	mapping [PointCount]uint16 // for the records that are being read
	emit    func(batch []byte)
	counts  Drained
}

// rewrite appends the records of src to the buffer, which has room for them,
// in the form that leaves the controller. Records are read word by word, once:
// a producer that overwrites them meanwhile gets a wrong record out, nothing
// worse. This is the hot loop; the conversion of Scale.Time stands in it by
// hand, because the compiler does not inline it.
func (b *batch) rewrite(src []uint64, tid uint32) {
	dst := b.buffer[b.fill:]
	anchor, nanos, mult := b.scale.ticks, uint64(b.scale.nanos), b.scale.mult
	thread := uint64(tid) << tidShift
	for len(src) >= recordWords && len(dst) >= recordWords {
		time, id, value, extra := src[0], src[1], src[2], src[3]
		src = src[recordWords:]
		// What says that it continues another is no record, whatever its point.
		local := id & (pointMask | attunev1.RecordContinuation<<flagsShift)
		if local >= PointCount {
			dst = b.follow(dst, [recordWords]uint64{time, id, value, extra})
			continue
		}
		point := b.mapping[local]
		if point == 0 {
			b.counts.Unmapped++
			continue
		}
		if id&(attunev1.RecordDuration<<flagsShift) != 0 {
			extra = b.scale.Duration(extra)
		}
		delta, back := bits.Sub64(time, anchor, 0)
		if back != 0 {
			delta = -delta
		}
		hi, lo := bits.Mul64(delta, mult)
		delta = hi<<32 | lo>>32
		if back != 0 {
			delta = -delta
		}
		dst[0] = nanos + delta
		dst[1] = uint64(point) | id&flagsMask | thread
		dst[2] = value
		dst[3] = extra
		dst = dst[recordWords:]
	}
	b.fill = len(b.buffer) - len(dst)
}

// follow appends what is no record: a continuation, if the record before it
// went the same way and announced it, else it is dropped. dst is the rest of
// the buffer.
func (b *batch) follow(dst []uint64, unit [recordWords]uint64) []uint64 {
	id := unit[abi.ContinuationPointAt/8]
	if id&(pointMask|flagsMask) != abi.ContinuationPoint|attunev1.RecordContinuation<<flagsShift {
		b.counts.Corrupt++
		return dst
	}
	if b.open(len(b.buffer)-len(dst)) == 0 {
		return dst
	}
	b.counts.Continuations++
	unit[abi.ContinuationPointAt/8] = id &^ pointMask // 0: no record's
	copy(dst, unit[:])
	return dst[recordWords:]
}

// open says how many continuations the last record in the buffer up to end
// still expects, as far as it is of the slot that is being read.
func (b *batch) open(end int) int {
	for at := end - recordWords; at >= b.first && end-at <= (attunev1.RecordMaxFollow+1)*recordWords; at -= recordWords {
		id := b.buffer[at+abi.ContinuationPointAt/8]
		if id&(attunev1.RecordContinuation<<flagsShift) == 0 {
			announced := int(id & flagsMask >> flagsShift >> attunev1.RecordFollow)
			return max(announced-(end-at)/recordWords+1, 0)
		}
	}
	return 0
}

// flush hands out what is in the buffer.
func (b *batch) flush() {
	if b.fill > 0 {
		b.emit(bytesOf(b.buffer[:b.fill]))
		b.counts.Received += uint64(b.fill / recordWords)
		b.fill, b.first = 0, 0
	}
}

// flushWhole hands out what is in the full buffer but a last record whose
// continuations are still to come: batches go their own ways.
func (b *batch) flushWhole() {
	end := b.fill
	if b.open(end) > 0 {
		for end -= recordWords; b.buffer[end+abi.ContinuationPointAt/8]&(attunev1.RecordContinuation<<flagsShift) != 0; end -= recordWords {
		}
	}
	rest := b.buffer[end:b.fill]
	b.fill = end
	b.flush()
	b.fill = copy(b.buffer, rest)
}
