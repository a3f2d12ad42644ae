// SPDX-License-Identifier: Apache-2.0

package report

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"

	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// Value is one value of a knob: a number, a text, a truth value, or unknown
// (null). The zero value is unknown.
type Value struct {
	v any // int64, uint64, float64, string, bool or nil
}

// ValueOf returns a message as a Value; nil is unknown.
func ValueOf(m *attunev1.Value) Value {
	switch k := m.GetKind().(type) {
	case *attunev1.Value_Integer:
		return Value{k.Integer}
	case *attunev1.Value_Unsigned:
		return Value{k.Unsigned}
	case *attunev1.Value_Real:
		return realValue(k.Real)
	case *attunev1.Value_Text:
		return Value{k.Text}
	case *attunev1.Value_Truth:
		return Value{k.Truth}
	}
	return Value{}
}

// realValue is a floating point number, as a text where JSON has no word for it.
func realValue(v float64) Value {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return Value{fmt.Sprint(v)}
	}
	return Value{v}
}

// Known reports whether the value is known.
func (v Value) Known() bool { return v.v != nil }

// MarshalJSON returns the bare value.
func (v Value) MarshalJSON() ([]byte, error) { return json.Marshal(v.v) }

// UnmarshalJSON reads a bare value; whole numbers become integers.
func (v *Value) UnmarshalJSON(data []byte) error {
	text := string(data)
	if n, err := strconv.ParseInt(text, 10, 64); err == nil {
		v.v = n
		return nil
	}
	if n, err := strconv.ParseUint(text, 10, 64); err == nil {
		v.v = n
		return nil
	}
	return json.Unmarshal(data, &v.v)
}

// String returns the value for people, "?" if it is unknown.
func (v Value) String() string {
	if v.v == nil {
		return "?"
	}
	return fmt.Sprint(v.v)
}
