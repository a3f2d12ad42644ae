// SPDX-License-Identifier: Apache-2.0

package openfiles

import (
	"errors"
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

func TestLimit(t *testing.T) {
	for free := range 3 {
		Limit(t, free, func() {
			for n := range free + 1 {
				file, err := os.Open(os.DevNull)
				if errors.Is(err, unix.EMFILE) != (n == free) {
					t.Errorf("of %d the one with number %d: %v", free, n, err)
				}
				t.Cleanup(func() { _ = file.Close() }) // nil is refused
			}
		})
	}
}
