// SPDX-License-Identifier: Apache-2.0

package flow

import (
	"bytes"
	"errors"
	"testing"
)

// FuzzCode: code may be anybody's. No exit lies outside of it.
func FuzzCode(f *testing.F) {
	f.Add([]byte{0x55, 0xe8, 0, 0, 0, 0, 0x5d, 0xc3})          // call, return
	f.Add([]byte{0xeb, 0xfe, 0xc3})                            // a loop
	f.Add([]byte{0x74, 0x01, 0xc3, 0xe9, 0xf7, 0xff, 0, 0})    // branches
	f.Add([]byte{0xff, 0x25, 0, 0, 0, 0, 0xf3, 0x0f, 0x1e, 0}) // a jump through memory
	f.Fuzz(func(t *testing.T, code []byte) {
		function := Part{Address: 0x1000, Code: code}
		outside := func(uint64, []Part) (*Part, error) { return nil, errors.New("outside") }
		exits, _, err := Exits(function, outside)
		if err == nil && (len(exits) == 0 || len(exits) > maxExits) {
			t.Errorf("%d exits", len(exits))
		}
		LoopsBack(function, function.Address)
		Names(function)
		s := Surroundings{Loaded: []Part{function}, Function: []Part{function}, Aims: mustAims(t, []Part{function}, []Part{function})}
		s.Aims.LedTo(function.Address, s.Function)
		if len(code) > 0 && !bytes.HasPrefix(code, s.CodeAt(function.Address)[:1]) {
			t.Error("another byte at the beginning")
		}
	})
}
