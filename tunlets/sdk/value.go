// SPDX-License-Identifier: Apache-2.0

package sdk

import (
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// Value is one typed value, as read from or written to a process. The zero
// Value means "unknown" or "not given". Values are immutable.
type Value struct {
	pb *attunev1.Value
}

// Int is a signed integer of any width.
func Int(v int64) Value {
	return Value{&attunev1.Value{Kind: &attunev1.Value_Integer{Integer: v}}}
}

// Uint is an unsigned integer, an address or a bit pattern.
func Uint(v uint64) Value {
	return Value{&attunev1.Value{Kind: &attunev1.Value_Unsigned{Unsigned: v}}}
}

// Real is a floating point number.
func Real(v float64) Value {
	return Value{&attunev1.Value{Kind: &attunev1.Value_Real{Real: v}}}
}

// Text is a string.
func Text(v string) Value {
	return Value{&attunev1.Value{Kind: &attunev1.Value_Text{Text: v}}}
}

// Bool is a truth value.
func Bool(v bool) Value {
	return Value{&attunev1.Value{Kind: &attunev1.Value_Truth{Truth: v}}}
}

// Known says whether there is a value at all.
func (v Value) Known() bool { return v.pb.GetKind() != nil }

// Uint64 returns the value as an unsigned integer, a truth value as 0 or 1.
// It reports false for text, for an unknown value, and where the number would
// change.
func (v Value) Uint64() (uint64, bool) {
	switch k := v.pb.GetKind().(type) {
	case *attunev1.Value_Unsigned:
		return k.Unsigned, true
	case *attunev1.Value_Integer:
		return uint64(k.Integer), k.Integer >= 0
	case *attunev1.Value_Truth:
		if k.Truth {
			return 1, true
		}
		return 0, true
	}
	return 0, false
}

// String formats the value for people; an unknown value is "?".
func (v Value) String() string { return attunev1.ValueText(v.pb) }
