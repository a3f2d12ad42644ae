// SPDX-License-Identifier: Apache-2.0

package flow

import (
	"encoding/binary"
	"slices"
	"testing"
)

func TestLedTo(t *testing.T) {
	caller := Part{Address: 0x3000, Code: slices.Concat([]byte{0xe8}, word32(0x6000-0x3005))}
	callees := Part{Address: 0x5000, Code: make([]byte, 0x3000)}
	aims := mustAims(t, []Part{{Address: 0x4000, Code: binary.LittleEndian.AppendUint64(nil, 0x5000)}}, []Part{caller, callees})
	for address, want := range map[uint64]bool{0x5000: true, 0x6000: true, 0x7000: false} {
		if aims.LedTo(address, nil) != want {
			t.Errorf("%#x: want %v", address, want)
		}
	}
	if aims.LedTo(0x6000, []Part{caller}) {
		t.Error("a call by the function itself is taken for another's")
	}
}
