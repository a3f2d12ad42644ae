// SPDX-License-Identifier: Apache-2.0

package openfiles

import (
	"os"
	"runtime"
	"testing"
)

// What nobody can reach any more is not counted, whenever it is closed.
func TestCount(t *testing.T) {
	before := Count(t)
	for range 20 {
		if _, err := os.Open(os.DevNull); err != nil {
			t.Fatal(err)
		}
	}
	if got := Count(t); got != before {
		t.Errorf("%d descriptors, %d of which nobody can reach, want %d", got, got-before, before)
	}
	file, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	if got := Count(t); got != before+1 {
		t.Errorf("%d descriptors with one more, %d before", got, before)
	}
	runtime.KeepAlive(file)
}
