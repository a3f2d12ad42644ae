// SPDX-License-Identifier: Apache-2.0

package procid

import (
	"os"
	"testing"
)

func TestAuxiliary(t *testing.T) {
	vector := []byte{31, 0, 0, 0, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 0, 0, 6, 0, 0, 0, 0, 0, 0, 0, 9, 0, 0, 0, 0, 0, 0, 0, 7, 0}
	for key, want := range map[uint64]uint64{AuxExecuted: 0x201, 6: 9, 7: 0} {
		if got := auxiliary(vector, key); got != want {
			t.Errorf("value of %d is %#x, want %#x", key, got, want)
		}
	}
	const pageSize = 6 // AT_PAGESZ
	if got, err := Auxiliary(os.Getpid(), pageSize); err != nil || got != uint64(os.Getpagesize()) {
		t.Errorf("page size %d, %v", got, err)
	}
}
