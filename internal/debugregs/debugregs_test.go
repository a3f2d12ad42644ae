// SPDX-License-Identifier: Apache-2.0

package debugregs

import (
	"errors"
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

// Each try either counts its hit or none at all, and always the same. A signal that
// comes between the breakpoint and its instruction makes it count twice.
func TestTry(t *testing.T) {
	for range 10 {
		hits, err := try()
		if errors.Is(err, os.ErrPermission) || errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOSYS) {
			t.Skip("breakpoints are not permitted here: ", err)
		}
		if err != nil {
			t.Fatal(err)
		}
		if dead := hits == 0; dead != Dead() {
			t.Errorf("dead %v, %v in another try", Dead(), dead)
		}
	}
}
