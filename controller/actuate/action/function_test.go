// SPDX-License-Identifier: Apache-2.0

package action

import (
	"errors"
	"strings"
	"testing"

	"github.com/attune-hpc/attune/controller/actuate/access"
	"github.com/attune-hpc/attune/internal/objfile"
	"github.com/attune-hpc/attune/internal/testing/targets"
)

// TestWidthOf: a parameter is known by the register that it is in.
func TestWidthOf(t *testing.T) {
	target := targets.Start(t, targets.BuildText(t, "widths", `#include <stdio.h>
struct pair { long a, b; };
struct large { long a[3]; };
int pair(struct pair p, int n, float x) { return (int)p.a + n + (int)x; }
int behind(struct large s, short n) { return (int)s.a[0] + n; }
struct large result(char n) { return (struct large){{n, n, n}}; }
int main(void) { puts("ready"); fflush(stdout); return getchar(); }
`, "-g"))
	images, err := objfile.Images(target.PID)
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		function string
		number   int
		real     bool
		want     int
		reason   string // why it is refused
	}{
		{"pair", 0, false, 0, ""}, {"pair", 1, false, 0, ""}, {"pair", 2, false, 4, ""}, {"pair", 0, true, 4, ""},
		{"pair", 3, false, 0, "no register 3 has an integer or address that is a parameter of pair; there are 0 (p), 1 (p), 2 (n)"},
		{"behind", 0, false, 2, ""}, {"behind", 0, true, 0, "no register has a floating-point number that is a parameter of behind"},
		{"result", 0, false, 0, "there are 1 (n)"}, {"result", 1, false, 1, ""}, // 0 is where the result goes
	} {
		found, err := objfile.LookupIn(images, "widths", test.function, objfile.Function)
		if err != nil {
			t.Fatal(err)
		}
		got, err := widthOf(found, test.number, test.real)
		refused := err != nil && errors.Is(err, access.ErrRefused) && strings.Contains(err.Error(), test.reason)
		if got != test.want || refused != (test.reason != "") {
			t.Errorf("%s %d: %d, %v; want %d, %q", test.function, test.number, got, err, test.want, test.reason)
		}
	}
}
