// SPDX-License-Identifier: Apache-2.0

package ring

import "math/bits"

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
		local := id & pointMask
		if local >= PointCount {
			d.counts.Corrupt++
			continue
		}
		point := d.mapping[local]
		if point == 0 {
			d.counts.Unmapped++
			continue
		}
		if id&(RecordDuration<<flagsShift) != 0 {
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
