// SPDX-License-Identifier: Apache-2.0

package flow

import (
	"encoding/binary"
	"math/rand/v2"
	"testing"
)

// What is quickly said not to be there is not there, and what is there is not
// said not to be.
func TestAims(t *testing.T) {
	const bytes, start, width = 64 << 10, 0x400000, 5 // more than what is near
	rng := rand.New(rand.NewPCG(1, 2))
	code, data := make([]byte, bytes), make([]byte, bytes)
	for i := range code {
		code[i] = byte(rng.Uint32())
	}
	for i := 0; i+4 <= bytes; i += 64 { // else nothing would lead into so little code
		binary.LittleEndian.PutUint32(code[i:], uint32(int32(rng.IntN(bytes)-i-4)))
		binary.LittleEndian.PutUint64(data[i:], start+rng.Uint64N(bytes))
	}
	s := Surroundings{
		Text: []Part{{Address: start, Code: code}}, Holding: func(uint64) (Part, bool) { return Part{}, false },
	}
	s.Loaded = []Part{s.Text[0], {Address: start + 0x100000, Code: data}}
	quick, led, pointers := s, 0, 0
	quick.Aims = NewAims(s.Loaded, s.Text)
	for from := uint64(start); from+width < start+bytes; from += 13 {
		slowAt, slow := s.codeLeads(from, from+width, nil)
		if at, ok := quick.codeLeads(from, from+width, nil); ok != slow || at != slowAt {
			t.Errorf("code to %#x: %v, %v", from, ok, slow)
		}
		slowAt, pointed := s.pointerLeads(from, from+width)
		if at, ok := quick.pointerLeads(from, from+width); ok != pointed || at != slowAt {
			t.Errorf("pointers to %#x: %v, %v", from, ok, pointed)
		}
		if slow {
			led++
		}
		if pointed {
			pointers++
		}
	}
	if led == 0 || pointers == 0 || led > bytes/26 || pointers > bytes/26 {
		t.Errorf("%d and %d of %d: the test shows nothing", led, pointers, bytes)
	}
}
