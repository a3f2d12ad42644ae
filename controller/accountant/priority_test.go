// SPDX-License-Identifier: Apache-2.0

package accountant

import (
	"testing"

	"golang.org/x/sys/unix"
)

// TestPriorityComesBack: whoever may not hurry does not, and who does has its own priority again.
func TestPriorityComesBack(t *testing.T) {
	before, err := unix.Getpriority(unix.PRIO_PROCESS, unix.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	calm := hurry()
	if during, err := unix.Getpriority(unix.PRIO_PROCESS, unix.Getpid()); err != nil || during != before && during != 20-hurryPriority {
		t.Errorf("%d, %v; it was %d", during, err, before)
	}
	calm()
	if after, err := unix.Getpriority(unix.PRIO_PROCESS, unix.Getpid()); err != nil || after != before {
		t.Errorf("%d, %v; it was %d", after, err, before)
	}
}
