// SPDX-License-Identifier: Apache-2.0

package access

import (
	"encoding/binary"
	"fmt"
	"math"

	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// Encode gives the little-endian bytes of a value in a variable of the given
// size, and refuses values that do not fit.
func Encode(value *attunev1.Value, size uint32) ([]byte, error) {
	var word uint64
	switch v := value.GetKind().(type) {
	case *attunev1.Value_Integer:
		if shift := 64 - 8*size; size < 8 && v.Integer<<shift>>shift != v.Integer {
			return nil, fmt.Errorf("%w: %d does not fit into %d bytes", ErrRefused, v.Integer, size)
		}
		word = uint64(v.Integer)
	case *attunev1.Value_Unsigned:
		if size < 8 && v.Unsigned>>(8*size) != 0 {
			return nil, fmt.Errorf("%w: %d does not fit into %d bytes", ErrRefused, v.Unsigned, size)
		}
		word = v.Unsigned
	case *attunev1.Value_Truth:
		if v.Truth {
			word = 1
		}
	case *attunev1.Value_Real:
		return encodeReal(v.Real, size)
	default:
		return nil, fmt.Errorf("%w: a variable takes a number or a truth value", ErrRefused)
	}
	buf := make([]byte, 8)
	binary.LittleEndian.PutUint64(buf, word)
	return buf[:size], nil
}

func encodeReal(real float64, size uint32) ([]byte, error) {
	switch size {
	case 4:
		return binary.LittleEndian.AppendUint32(nil, math.Float32bits(float32(real))), nil
	case 8:
		return binary.LittleEndian.AppendUint64(nil, math.Float64bits(real)), nil
	}
	return nil, fmt.Errorf("%w: a real number takes 4 or 8 bytes, not %d", ErrRefused, size)
}

// Decode reads bytes as a value of the same kind as like.
func Decode(data []byte, like *attunev1.Value) *attunev1.Value {
	buf := make([]byte, 8)
	copy(buf, data)
	word := binary.LittleEndian.Uint64(buf)
	switch like.GetKind().(type) {
	case *attunev1.Value_Integer:
		shift := 64 - 8*len(data)
		return Integer(int64(word<<shift) >> shift)
	case *attunev1.Value_Truth:
		return &attunev1.Value{Kind: &attunev1.Value_Truth{Truth: word != 0}}
	case *attunev1.Value_Real:
		if len(data) == 4 {
			return &attunev1.Value{Kind: &attunev1.Value_Real{Real: float64(math.Float32frombits(uint32(word)))}}
		}
		return &attunev1.Value{Kind: &attunev1.Value_Real{Real: math.Float64frombits(word)}}
	}
	return Unsigned(word)
}

// Whole is a value as a signed number; false if it is none, or too large.
func Whole(value *attunev1.Value) (int64, bool) {
	switch v := value.GetKind().(type) {
	case *attunev1.Value_Integer:
		return v.Integer, true
	case *attunev1.Value_Unsigned:
		return int64(v.Unsigned), v.Unsigned <= math.MaxInt64
	}
	return 0, false
}

// Integer is a signed number.
func Integer(v int64) *attunev1.Value {
	return &attunev1.Value{Kind: &attunev1.Value_Integer{Integer: v}}
}

// Unsigned is an unsigned number.
func Unsigned(v uint64) *attunev1.Value {
	return &attunev1.Value{Kind: &attunev1.Value_Unsigned{Unsigned: v}}
}

// Real is a floating-point number.
func Real(v float64) *attunev1.Value {
	return &attunev1.Value{Kind: &attunev1.Value_Real{Real: v}}
}

// RegisterOf is an integer value as a register holds it.
func RegisterOf(value *attunev1.Value) uint64 {
	switch v := value.GetKind().(type) {
	case *attunev1.Value_Integer:
		return uint64(v.Integer)
	case *attunev1.Value_Unsigned:
		return v.Unsigned
	case *attunev1.Value_Truth:
		if v.Truth {
			return 1
		}
	}
	return 0
}

// TextValue is a text.
func TextValue(s string) *attunev1.Value {
	return &attunev1.Value{Kind: &attunev1.Value_Text{Text: s}}
}

// BytesOf are the first size bytes of a number.
func BytesOf(number int64, size int) []byte {
	return binary.LittleEndian.AppendUint64(nil, uint64(number))[:size]
}
