// SPDX-License-Identifier: Apache-2.0

// Package attunev1 is the protocol between the parts of Attune, version 1,
// generated from the .proto files beside it; and how its values read.
package attunev1

import "strconv"

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
