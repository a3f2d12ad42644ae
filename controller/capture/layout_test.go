// SPDX-License-Identifier: Apache-2.0

package capture

import (
	"testing"

	"github.com/attune-hpc/attune/dmlib/abi"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// TestProtocolSaysWhatProgramsSay: types and comparisons go into a program as they
// come.
func TestProtocolSaysWhatProgramsSay(t *testing.T) {
	types := map[attunev1.CaptureType]int32{
		attunev1.CaptureType_CAPTURE_TYPE_I8:      abi.TypeI8,
		attunev1.CaptureType_CAPTURE_TYPE_I16:     abi.TypeI16,
		attunev1.CaptureType_CAPTURE_TYPE_I32:     abi.TypeI32,
		attunev1.CaptureType_CAPTURE_TYPE_I64:     abi.TypeI64,
		attunev1.CaptureType_CAPTURE_TYPE_U8:      abi.TypeU8,
		attunev1.CaptureType_CAPTURE_TYPE_U16:     abi.TypeU16,
		attunev1.CaptureType_CAPTURE_TYPE_U32:     abi.TypeU32,
		attunev1.CaptureType_CAPTURE_TYPE_U64:     abi.TypeU64,
		attunev1.CaptureType_CAPTURE_TYPE_POINTER: abi.TypePointer,
		attunev1.CaptureType_CAPTURE_TYPE_F32:     abi.TypeF32,
		attunev1.CaptureType_CAPTURE_TYPE_F64:     abi.TypeF64,
		attunev1.CaptureType_CAPTURE_TYPE_STRING:  abi.TypeString,

		attunev1.CaptureType_CAPTURE_TYPE_SIZED_STRING: abi.TypeSizedString,
	}
	comparisons := map[attunev1.Comparison]int32{
		attunev1.Comparison_COMPARISON_EQUAL:         abi.IsEqual,
		attunev1.Comparison_COMPARISON_NOT_EQUAL:     abi.IsNotEqual,
		attunev1.Comparison_COMPARISON_LESS:          abi.IsLess,
		attunev1.Comparison_COMPARISON_LESS_EQUAL:    abi.IsLessEqual,
		attunev1.Comparison_COMPARISON_GREATER:       abi.IsGreater,
		attunev1.Comparison_COMPARISON_GREATER_EQUAL: abi.IsGreaterEqual,
	}
	for number, name := range attunev1.CaptureType_name {
		if types[attunev1.CaptureType(number)] != number {
			t.Errorf("%s is %d, in program.h %d", name, number, types[attunev1.CaptureType(number)])
		}
	}
	for number, name := range attunev1.Comparison_name {
		if comparisons[attunev1.Comparison(number)] != number {
			t.Errorf("%s is %d, in program.h %d", name, number, comparisons[attunev1.Comparison(number)])
		}
	}
}

func TestPlaces(t *testing.T) {
	for keys, want := range map[int]int{1: 2, 2: 4, 3: 8, 4: 8, 5: 16, 256: 512, 1000: 2048, MaxKeys: abi.Places} {
		if got := (Program{MaxKeys: keys}).Places(); got != want {
			t.Errorf("%d keys: %d places, want %d", keys, got, want)
		}
	}
}
