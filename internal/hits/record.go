// SPDX-License-Identifier: Apache-2.0

package hits

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

// Hit is one record with what follows it.
type Hit struct {
	// Time is when the hit happened, or ended if it took time.
	Time time.Time
	// Point is the point's index, Thread the thread's id.
	Point, Thread uint32
	// Timed says that Duration, in nanoseconds, is how long the call took.
	Timed    bool
	Duration uint64
	// Value is the point's value, or that of its value capture.
	Value uint64
	// Captures are in the order of the point's.
	Captures []Captured
}

// Captured is one captured value. Two are equal if they are of the same kind and
// value.
type Captured struct {
	// Kind is one of those below, Bits the value, of a string Text.
	Kind byte
	Bits uint64
	Text string
	// Cut says that the string was longer.
	Cut bool
}

// Kinds of captured values, as the first continuation tells them.
const (
	KindNone = iota
	KindUnsigned
	KindSigned
	KindReal
	KindAddress
	KindString
	KindUnreadable
)

// Decode reads packed records. What is not whole at the end is left out.
func Decode(n *attunev1.NamedRecords) (out []Hit) {
	data := n.GetRecords()
	for len(data) >= recordSize {
		flags := binary.LittleEndian.Uint16(data[10:])
		h := Hit{
			Time:  time.Unix(0, int64(binary.LittleEndian.Uint64(data))+n.GetMonotonicToUnixNano()),
			Point: uint32(binary.LittleEndian.Uint16(data[8:])), Thread: binary.LittleEndian.Uint32(data[12:]),
			Timed: flags&flagDuration != 0,
			Value: binary.LittleEndian.Uint64(data[16:]), Duration: binary.LittleEndian.Uint64(data[24:]),
		}
		data = data[recordSize:]
		following := min(int(flags>>continuations), len(data)/recordSize)
		h.Captures = captures(data[:following*recordSize])
		data = data[following*recordSize:]
		if h.Point != 0 { // else a continuation that has lost its record
			out = append(out, h)
		}
	}
	return out
}

// captures decodes continuations: three words each, and in the first one what
// kind each capture is of.
func captures(data []byte) (out []Captured) {
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
		c := Captured{Kind: byte(kinds & 15)}
		if len(words) < 8 {
			return out
		}
		c.Bits, words = binary.LittleEndian.Uint64(words), words[8:]
		if c.Kind == KindString {
			length := int(min(c.Bits&math.MaxUint32, uint64(len(words))))
			c.Text, c.Cut = string(words[:length]), c.Bits>>32&1 != 0
			words = words[min((length+7)&^7, len(words)):]
		}
		out = append(out, c)
	}
	return out
}

// JSON is the value as JSON has it; nil if it could not be read.
func (c Captured) JSON() any {
	switch c.Kind {
	case KindUnsigned, KindAddress:
		return c.Bits
	case KindSigned:
		return int64(c.Bits)
	case KindReal:
		if f := math.Float64frombits(c.Bits); !math.IsNaN(f) && !math.IsInf(f, 0) {
			return f
		}
		return strconv.FormatFloat(math.Float64frombits(c.Bits), 'g', -1, 64)
	case KindString:
		return c.Text
	}
	return nil
}

// String is the value for people.
func (c Captured) String() string {
	switch c.Kind {
	case KindUnsigned:
		return strconv.FormatUint(c.Bits, 10)
	case KindSigned:
		return strconv.FormatInt(int64(c.Bits), 10)
	case KindReal:
		return strconv.FormatFloat(math.Float64frombits(c.Bits), 'g', 6, 64)
	case KindAddress:
		return "0x" + strconv.FormatUint(c.Bits, 16)
	case KindString:
		if c.Cut {
			return strconv.Quote(c.Text) + "…"
		}
		return strconv.Quote(c.Text)
	}
	return "unreadable"
}
