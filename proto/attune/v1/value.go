// SPDX-License-Identifier: Apache-2.0

// Package attunev1 is the protocol between the parts of Attune, version 1,
// generated from the .proto files beside it; and how its values read.
package attunev1

import (
	"fmt"
	"strconv"
)

// ValueText is a value for people, texts as they are; "?" if there is none.
func ValueText(v *Value) string {
	if text, ok := v.GetKind().(*Value_Text); ok {
		return text.Text
	}
	return ValueLiteral(v)
}

// ValueLiteral is a value as it stands in C, texts in quotes; "?" if there is
// none.
func ValueLiteral(v *Value) string {
	switch k := v.GetKind().(type) {
	case *Value_Integer:
		return strconv.FormatInt(k.Integer, 10)
	case *Value_Unsigned:
		return strconv.FormatUint(k.Unsigned, 10)
	case *Value_Real:
		return strconv.FormatFloat(k.Real, 'g', -1, 64)
	case *Value_Text:
		return strconv.Quote(k.Text)
	case *Value_Truth:
		return strconv.FormatBool(k.Truth)
	}
	return "?"
}

// numberOf returns a value as a number, if it is one.
func numberOf(v *Value) (float64, bool) {
	switch k := v.GetKind().(type) {
	case *Value_Integer:
		return float64(k.Integer), true
	case *Value_Unsigned:
		return float64(k.Unsigned), true
	case *Value_Real:
		return k.Real, true
	}
	return 0, false
}

// OutOfBounds says why a value is not within a knob's bounds, or is not a
// number although the knob has bounds; empty: neither, or there is no value.
func OutOfBounds(k *Knob, v *Value) string {
	if v == nil {
		return ""
	}
	n, numeric := numberOf(v)
	if !numeric && (k.GetMin() != nil || k.GetMax() != nil) {
		return fmt.Sprintf("knob %s: %s is no number, and the knob has bounds", k.GetName(), ValueLiteral(v))
	}
	if low, ok := numberOf(k.GetMin()); ok && !(n >= low) {
		return fmt.Sprintf("knob %s: %s is below the least allowed value %s", k.GetName(), ValueLiteral(v), ValueLiteral(k.GetMin()))
	}
	if high, ok := numberOf(k.GetMax()); ok && !(n <= high) {
		return fmt.Sprintf("knob %s: %s is above the greatest allowed value %s", k.GetName(), ValueLiteral(v), ValueLiteral(k.GetMax()))
	}
	return ""
}
