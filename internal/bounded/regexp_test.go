// SPDX-License-Identifier: Apache-2.0

package bounded_test

import (
	"errors"
	"runtime"
	"strings"
	"testing"

	"github.com/attune-hpc/attune/internal/bounded"
)

// TestRegexp: what people write is taken, and what becomes large is refused before it
// does.
func TestRegexp(t *testing.T) {
	for _, text := range []string{``, `-in (in|input)\.[a-z]{1,20}`, `^lmp -sf \S+ .*$`, `(?i)case [0-9]{4}-[0-9]{2}`} {
		if _, err := bounded.Regexp(text); err != nil {
			t.Errorf("%q: %v", text, err)
		}
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for _, text := range []string{
		strings.Repeat("x", 2000), strings.Repeat(`(.?){1000}`, 90), `(.{1,1000})`, `((x{10}){10}){10}`, `(\pL{100,}|y){9}`,
	} {
		if _, err := bounded.Regexp(text); !errors.Is(err, bounded.ErrLimit) {
			t.Errorf("%.40q: %v", text, err)
		}
	}
	runtime.ReadMemStats(&after)
	if n := after.TotalAlloc - before.TotalAlloc; n > mega {
		t.Errorf("%d bytes were allocated", n)
	}
	if _, err := bounded.Regexp(`(`); err == nil || errors.Is(err, bounded.ErrLimit) {
		t.Errorf("a wrong one: %v", err)
	}
}
