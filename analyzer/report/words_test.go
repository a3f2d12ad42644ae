// SPDX-License-Identifier: Apache-2.0

package report

import "testing"

func TestFigure(t *testing.T) {
	for v, want := range map[float64]string{
		0: "0", 8.5412: "8.541", 1100.4: "1100", 45377.2: "45380", 588912: "588900", 0.00012345: "0.0001234", -2.5: "-2.5",
	} {
		if got := figure(v, 4); got != want {
			t.Errorf("%v: %s, want %s", v, got, want)
		}
	}
}
