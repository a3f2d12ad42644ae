// SPDX-License-Identifier: Apache-2.0

package debugregs

import (
	"errors"
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

// Each try either counts its one hit or none at all, and always the same.
func TestTry(t *testing.T) {
	for range 10 {
		hits, err := try()
		if errors.Is(err, os.ErrPermission) || errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOSYS) {
			t.Skip("breakpoints are not permitted here: ", err)
		}
		if err != nil || hits > 1 {
			t.Fatalf("%d hits, %v", hits, err)
		}
		if dead := hits == 0; dead != Dead() {
			t.Errorf("dead %v, %v in another try", Dead(), dead)
		}
	}
}
