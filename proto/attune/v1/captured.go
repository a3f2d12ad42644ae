// SPDX-License-Identifier: Apache-2.0

package attunev1

import (
	"encoding/binary"
	"math"
	"strconv"
)

// CapturedKind says what a captured value is; see RecordBatch.records.
type CapturedKind uint8

// The kinds of captured values.
const (
	CapturedNone CapturedKind = iota
	CapturedUnsigned
	CapturedSigned
	CapturedReal
	CapturedAddress
	CapturedString
	CapturedUnreadable

	kindBits = 4
	kindMask = 1<<kindBits - 1
	// mostCaptured is how many kinds a continuation has room for.
	mostCaptured = 32 / kindBits
	// textCut is the bit of a text's length that says that it was cut.
	textCut = 1 << 32
)

// Captured is a captured value: an integer, a floating point number or a string.
// The zero Captured is one that could not be read. Two are equal if they are of
// the same kind and value.
type Captured struct {
	// Kind is one of those above.
	Kind CapturedKind
	// Bits are the value, of a string 0.
	Bits uint64
	// Content is the value of a string.
	Content string
	// Cut says that the string was longer.
	Cut bool
}

// Readable is false where it was not there: behind a pointer that led nowhere.
func (c Captured) Readable() bool {
	return c.Kind != CapturedNone && c.Kind != CapturedUnreadable
}

// Int is the value of an integer, and a floating point number's integral part.
func (c Captured) Int() int64 {
	if c.Kind == CapturedReal {
		return int64(math.Float64frombits(c.Bits))
	}
	return int64(c.Bits)
}

// Uint is the value of an unsigned integer or address.
func (c Captured) Uint() uint64 { return c.Bits }

// Real is the value of any number.
func (c Captured) Real() float64 {
	switch c.Kind {
	case CapturedReal:
		return math.Float64frombits(c.Bits)
	case CapturedSigned:
		return float64(int64(c.Bits))
	}
	return float64(c.Bits)
}

// Text is a string, and whether it was cut at its limit.
func (c Captured) Text() (text string, cut bool) { return c.Content, c.Cut }

// JSON is the value as JSON has it; nil if it could not be read.
func (c Captured) JSON() any {
	switch c.Kind {
	case CapturedUnsigned, CapturedAddress:
		return c.Bits
	case CapturedSigned:
		return int64(c.Bits)
	case CapturedReal:
		if f := c.Real(); !math.IsNaN(f) && !math.IsInf(f, 0) {
			return f
		}
		return strconv.FormatFloat(c.Real(), 'g', -1, 64)
	case CapturedString:
		return c.Content
	}
	return nil
}

// String is the value for people.
func (c Captured) String() string {
	switch c.Kind {
	case CapturedUnsigned:
		return strconv.FormatUint(c.Bits, 10)
	case CapturedSigned:
		return strconv.FormatInt(int64(c.Bits), 10)
	case CapturedReal:
		return strconv.FormatFloat(c.Real(), 'g', 6, 64)
	case CapturedAddress:
		return "0x" + strconv.FormatUint(c.Bits, 16)
	case CapturedString:
		if c.Cut {
			return strconv.Quote(c.Content) + "…"
		}
		return strconv.Quote(c.Content)
	}
	return "unreadable"
}

// Captured returns what a hit captured, in the order of the point's captures; nil
// if that was nothing. Of a value that is not there the kind is unreadable, and a
// string of which a part is not there was cut. It allocates.
func (r Record) Captured() (out []Captured) {
	if len(r.Continuations) < RecordSize {
		return nil
	}
	words := capturedWords{units: r.Continuations}
	for kinds := binary.LittleEndian.Uint32(r.Continuations[recordThread:]); kinds != 0; kinds >>= kindBits {
		c := Captured{Kind: CapturedKind(kinds & kindMask)}
		word, ok := words.next()
		switch {
		case !ok:
			c.Kind = CapturedUnreadable
		case c.Kind == CapturedString:
			c.Content, c.Cut = words.text(word)
		default:
			c.Bits = word
		}
		out = append(out, c)
	}
	return out
}

// wordPlaces are where the words of a continuation are.
var wordPlaces = [...]int{recordTime, recordValue, recordExtra}

// capturedWords reads the words of continuations.
type capturedWords struct {
	units []byte
	read  int // of the first unit
}

func (w *capturedWords) next() (word uint64, ok bool) {
	if len(w.units) < RecordSize {
		return 0, false
	}
	word = binary.LittleEndian.Uint64(w.units[wordPlaces[w.read]:])
	if w.read++; w.read == len(wordPlaces) {
		w.units, w.read = w.units[RecordSize:], 0
	}
	return word, true
}

// text reads the string that follows its length.
func (w *capturedWords) text(length uint64) (text string, cut bool) {
	most := uint64(8 * (len(w.units)/RecordSize*len(wordPlaces) - w.read))
	n := min(length&(textCut-1), most)
	bytes := make([]byte, 0, n+8)
	for uint64(len(bytes)) < n {
		word, _ := w.next()
		bytes = binary.LittleEndian.AppendUint64(bytes, word)
	}
	return string(bytes[:n]), length&textCut != 0 || n < length&(textCut-1)
}

// CapturedWriter appends the continuations of a packed record, word by word. The
// words of a value are those that RecordBatch.records tells.
type CapturedWriter struct {
	packed []byte
	record int // where it is in packed
	kinds  uint32
	words  int
}

// WriteCaptured returns a CapturedWriter for the last of packed records, whose
// flags must not announce continuations yet. Each four bits of kinds are one
// CapturedKind, the lowest that of the first value.
func WriteCaptured(packed []byte, kinds uint32) CapturedWriter {
	return CapturedWriter{packed: packed, record: len(packed) - RecordSize, kinds: kinds}
}

// Word appends a word.
func (w *CapturedWriter) Word(word uint64) {
	at := w.words % len(wordPlaces)
	if at == 0 {
		w.packed = append(w.packed, make([]byte, RecordSize)...)
	}
	unit := w.packed[len(w.packed)-RecordSize:]
	if w.words == 0 {
		binary.LittleEndian.PutUint32(unit[recordThread:], w.kinds)
	}
	unit[recordFlags] = RecordContinuation
	binary.LittleEndian.PutUint64(unit[wordPlaces[at]:], word)
	w.words++
}

// Finish announces the continuations in the record and returns all of it.
func (w *CapturedWriter) Finish() []byte {
	units := (len(w.packed)-w.record)/RecordSize - 1
	w.packed[w.record+recordFlags+1] = byte(min(units, RecordMaxFollow))
	return w.packed
}

// appendCaptured appends values to the last of packed records, as many as a
// record can have.
func appendCaptured(packed []byte, captured []Captured) []byte {
	captured = captured[:min(len(captured), mostCaptured)]
	var kinds uint32
	for i, c := range captured {
		kinds |= uint32(c.Kind&kindMask) << (kindBits * i)
	}
	w := WriteCaptured(packed, kinds)
	for _, c := range captured {
		if c.Kind != CapturedString {
			w.Word(c.Bits)
			continue
		}
		length := uint64(len(c.Content))
		if c.Cut {
			length |= textCut
		}
		w.Word(length)
		for text := c.Content; text != ""; text = text[min(8, len(text)):] {
			var word [8]byte
			copy(word[:], text)
			w.Word(binary.LittleEndian.Uint64(word[:]))
		}
	}
	return w.Finish()
}
