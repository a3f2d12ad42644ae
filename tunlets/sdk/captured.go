// SPDX-License-Identifier: Apache-2.0

package sdk

import (
	"encoding/binary"
	"math"
)

// RecordContinuation marks what belongs to the record before it and is none.
// Records hands out records only.
const RecordContinuation = 1 << 3

// Kinds of captured values; see RecordBatch in the protocol.
const (
	kindUnsigned = 1 + iota
	kindSigned
	kindFloat
	kindPointer
	kindString
	kindUnreadable
)

// Captured is a captured value: an integer, a floating point number or a string.
// The zero Captured is one that could not be read.
type Captured struct {
	kind uint32
	bits uint64
	text string
	cut  bool
}

// Readable is false where it was not there: behind a pointer that led nowhere.
func (c Captured) Readable() bool { return c.kind != 0 && c.kind != kindUnreadable }

// Int is the value of an integer, and a floating point number's integral part.
func (c Captured) Int() int64 {
	if c.kind == kindFloat {
		return int64(math.Float64frombits(c.bits))
	}
	return int64(c.bits)
}

// Uint is the value of an unsigned integer or address.
func (c Captured) Uint() uint64 { return c.bits }

// Real is the value of any number.
func (c Captured) Real() float64 {
	switch c.kind {
	case kindFloat:
		return math.Float64frombits(c.bits)
	case kindSigned:
		return float64(int64(c.bits))
	}
	return float64(c.bits)
}

// Text is a string, and whether it was cut at its limit.
func (c Captured) Text() (text string, cut bool) { return c.text, c.cut }

// Captured returns what a record of this run captured, in the order of the
// point's Captures; nil if that was nothing. It allocates.
func (r Records) Captured(rec Record) (out []Captured) {
	if rec.units == 0 || rec.units+RecordSize > len(r.packed) {
		return nil
	}
	w := words{units: r.packed[rec.units:]}
	for kinds := binary.LittleEndian.Uint32(w.units[12:]); kinds != 0; kinds >>= 4 {
		c := Captured{kind: kinds & 15, bits: w.next()}
		if c.kind == kindString {
			c.text, c.cut = w.text(c.bits)
			c.bits = 0
		}
		out = append(out, c)
	}
	return out
}

// words reads the words of continuations, three each, up to the next record;
// behind the last one they are 0.
type words struct {
	units []byte
	at    int // in the unit
}

func (w *words) next() uint64 {
	offsets := [...]int{0, 16, 24}
	if len(w.units) < RecordSize || w.units[10]&RecordContinuation == 0 {
		return 0
	}
	word := binary.LittleEndian.Uint64(w.units[offsets[w.at]:])
	if w.at++; w.at == len(offsets) {
		w.units, w.at = w.units[RecordSize:], 0
	}
	return word
}

// text reads the bytes that follow a string's length.
func (w *words) text(length uint64) (text string, cut bool) {
	n := min(int(uint32(length)), len(w.units))
	bytes := make([]byte, 0, n+7)
	for len(bytes) < n {
		bytes = binary.LittleEndian.AppendUint64(bytes, w.next())
	}
	return string(bytes[:n]), length>>32&1 != 0
}

// indexOf lists where the records are among packed ones and continuations; nil
// if there are records only.
func indexOf(packed []byte) (index []int32) {
	for at := 0; at < len(packed); at += RecordSize {
		switch continues := packed[at+10]&RecordContinuation != 0; {
		case continues && index == nil:
			index = make([]int32, 0, len(packed)/RecordSize)
			for before := 0; before < at; before += RecordSize {
				index = append(index, int32(before))
			}
		case !continues && index != nil:
			index = append(index, int32(at))
		}
	}
	return index
}
