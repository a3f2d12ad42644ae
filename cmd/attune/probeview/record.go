// SPDX-License-Identifier: Apache-2.0

package probeview

import (
	"encoding/binary"
	"math"
	"strconv"
	"time"

	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// recordSize is the size of a packed record and of a continuation; see
// RecordBatch.records of the protocol.
const recordSize = 32

// Flags of a record.
const (
	flagDuration  = 1 << 0
	continuations = 8 // shift: how many follow
)

// hit is one record with what follows it.
type hit struct {
	time     time.Time
	point    uint32
	thread   uint32
	duration bool
	value    uint64
	extra    uint64
	captures []captured
}

// captured is one captured value.
type captured struct {
	kind byte
	bits uint64
	text string // of a string
	cut  bool
}

// Kinds of captured values, as the first continuation tells them.
const (
	kindNone = iota
	kindUnsigned
	kindSigned
	kindReal
	kindAddress
	kindString
	kindUnreadable
)

// hits decodes packed records. What is not whole at the end is left out.
func hits(n *attunev1.NamedRecords) (out []hit) {
	data := n.GetRecords()
	for len(data) >= recordSize {
		flags := binary.LittleEndian.Uint16(data[10:])
		h := hit{
			time:  time.Unix(0, int64(binary.LittleEndian.Uint64(data))+n.GetMonotonicToUnixNano()),
			point: uint32(binary.LittleEndian.Uint16(data[8:])), thread: binary.LittleEndian.Uint32(data[12:]),
			duration: flags&flagDuration != 0,
			value:    binary.LittleEndian.Uint64(data[16:]), extra: binary.LittleEndian.Uint64(data[24:]),
		}
		data = data[recordSize:]
		following := min(int(flags>>continuations), len(data)/recordSize)
		h.captures = captures(data[:following*recordSize])
		data = data[following*recordSize:]
		if h.point != 0 { // else a continuation that has lost its record
			out = append(out, h)
		}
	}
	return out
}

// captures decodes continuations: three words each, and in the first one what
// kind each capture is of.
func captures(data []byte) (out []captured) {
	if len(data) == 0 {
		return nil
	}
	kinds := binary.LittleEndian.Uint32(data[12:])
	var words []byte
	for ; len(data) >= recordSize; data = data[recordSize:] {
		words = append(words, data[:8]...)
		words = append(words, data[16:recordSize]...)
	}
	for ; kinds != 0; kinds >>= 4 {
		c := captured{kind: byte(kinds & 15)}
		if len(words) < 8 {
			return out
		}
		c.bits, words = binary.LittleEndian.Uint64(words), words[8:]
		if c.kind == kindString {
			length := int(min(c.bits&math.MaxUint32, uint64(len(words))))
			c.text, c.cut = string(words[:length]), c.bits>>32&1 != 0
			words = words[min((length+7)&^7, len(words)):]
		}
		out = append(out, c)
	}
	return out
}

// json is the value as JSON has it; nil if it could not be read.
func (c captured) json() any {
	switch c.kind {
	case kindUnsigned, kindAddress:
		return c.bits
	case kindSigned:
		return int64(c.bits)
	case kindReal:
		if f := math.Float64frombits(c.bits); !math.IsNaN(f) && !math.IsInf(f, 0) {
			return f
		}
		return strconv.FormatFloat(math.Float64frombits(c.bits), 'g', -1, 64)
	case kindString:
		return c.text
	}
	return nil
}

// String is the value for people.
func (c captured) String() string {
	switch c.kind {
	case kindUnsigned:
		return strconv.FormatUint(c.bits, 10)
	case kindSigned:
		return strconv.FormatInt(int64(c.bits), 10)
	case kindReal:
		return strconv.FormatFloat(math.Float64frombits(c.bits), 'g', 6, 64)
	case kindAddress:
		return "0x" + strconv.FormatUint(c.bits, 16)
	case kindString:
		if c.cut {
			return strconv.Quote(c.text) + "…"
		}
		return strconv.Quote(c.text)
	}
	return "unreadable"
}
