// SPDX-License-Identifier: Apache-2.0

package shm

import (
	"math/bits"

	"github.com/attune-hpc/attune/dmlib/abi"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

const (
	pointMask  = 1<<16 - 1
	flagsShift = 16
	flagsMask  = pointMask << flagsShift
	tidShift   = 32
)

// rewrite appends the records of src to the buffer, which has room for them,
// in the form that leaves the controller. Records are read word by word, once:
// a producer that overwrites them meanwhile gets a wrong record out, nothing
// worse. This is the hot loop; the conversion of Scale.Time stands in it by
// hand, because the compiler does not inline it.
func (d *Drainer) rewrite(src []uint64, tid uint32) {
	dst := d.buffer[d.fill:]
	anchor, nanos, mult := d.scale.ticks, uint64(d.scale.nanos), d.scale.mult
	thread := uint64(tid) << tidShift
	for len(src) >= recordWords && len(dst) >= recordWords {
		time, id, value, extra := src[0], src[1], src[2], src[3]
		src = src[recordWords:]
		// What says that it continues another is no record, whatever its point.
		local := id & (pointMask | attunev1.RecordContinuation<<flagsShift)
		if local >= PointCount {
			dst = d.follow(dst, [recordWords]uint64{time, id, value, extra})
			continue
		}
		point := d.mapping[local]
		if point == 0 {
			d.counts.Unmapped++
			continue
		}
		if id&(attunev1.RecordDuration<<flagsShift) != 0 {
			extra = d.scale.Duration(extra)
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
	d.fill = len(d.buffer) - len(dst)
}

// follow appends what is no record: a continuation, if the record before it
// went the same way and announced it, else it is dropped. dst is the rest of
// the buffer.
func (d *Drainer) follow(dst []uint64, unit [recordWords]uint64) []uint64 {
	id := unit[abi.ContinuationPointAt/8]
	if id&(pointMask|flagsMask) != abi.ContinuationPoint|attunev1.RecordContinuation<<flagsShift {
		d.counts.Corrupt++
		return dst
	}
	if d.open(len(d.buffer)-len(dst)) == 0 {
		return dst
	}
	d.counts.Continuations++
	unit[abi.ContinuationPointAt/8] = id &^ pointMask // 0: no record's
	copy(dst, unit[:])
	return dst[recordWords:]
}

// open says how many continuations the last record in the buffer up to end
// still expects, as far as it is of the slot that is being read.
func (d *Drainer) open(end int) int {
	for at := end - recordWords; at >= d.first && end-at <= (attunev1.RecordMaxFollow+1)*recordWords; at -= recordWords {
		id := d.buffer[at+abi.ContinuationPointAt/8]
		if id&(attunev1.RecordContinuation<<flagsShift) == 0 {
			announced := int(id & flagsMask >> flagsShift >> attunev1.RecordFollow)
			return max(announced-(end-at)/recordWords+1, 0)
		}
	}
	return 0
}
