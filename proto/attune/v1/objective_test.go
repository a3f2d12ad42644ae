// SPDX-License-Identifier: Apache-2.0

package attunev1

import (
	"math"
	"testing"
)

func TestCheckObjective(t *testing.T) {
	for value, fits := range map[float64]bool{
		0: true, 1e-300: true, 100: true, 1e100: true,
		-1e-9: false, 1.1e100: false, math.Inf(1): false, math.Inf(-1): false, math.NaN(): false,
	} {
		if err := CheckObjective(value); (err == nil) != fits {
			t.Errorf("%v: %v", value, err)
		}
	}
}
