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
			for range free {
				file, err := os.Open(os.DevNull)
				if err != nil {
					t.Fatal(err)
				}
				defer file.Close()
			}
			if _, err := os.Open(os.DevNull); !errors.Is(err, unix.EMFILE) {
				t.Errorf("one more than %d: %v", free, err)
			}
		})
	}
}
