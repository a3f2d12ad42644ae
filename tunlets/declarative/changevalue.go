// SPDX-License-Identifier: Apache-2.0

package declarative

import (
	"fmt"
	"math"

	"github.com/attune-hpc/attune/tunlets/sdk"
)

// value is a value as the change takes it. The type of a number is what the file says, and does
// not depend on the number: without debug information nobody else knows what a variable is.
func (c *change) value(v any) sdk.Value {
	switch v := v.(type) {
	case string:
		return sdk.Text(v)
	case bool:
		return sdk.Bool(v)
	}
	if !c.real {
		return whole(v)
	}
	n, known := asNumber(v)
	if !known {
		return sdk.Value{}
	}
	return sdk.Real(n)
}

// fraction is an error about a number with a fraction for an integer variable. Cut off it could
// be written to a variable that is none, as 0 where 0.75 is meant.
func (c *change) fraction(v any) error {
	if n, is := v.(float64); !is || !c.variable || c.real || n == math.Trunc(n) {
		return nil
	}
	return fmt.Errorf("the value for variable %s is no whole number: write int(VALUE) to cut off what follows the point, or give the variable type: real", c.knob.Name)
}

// whole is a number without what follows its point; unknown if it has more than 64 bits.
func whole(v any) sdk.Value {
	switch n := v.(type) {
	case int64:
		if n < 0 {
			return sdk.Int(n)
		}
		return sdk.Uint(uint64(n))
	case uint64:
		return sdk.Uint(n)
	case float64:
		switch n = math.Trunc(n); {
		case n >= 0 && n < 1<<64:
			return sdk.Uint(uint64(n))
		case n < 0 && n >= -1<<63:
			return sdk.Int(int64(n))
		}
	}
	return sdk.Value{}
}
