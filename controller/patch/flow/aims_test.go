// SPDX-License-Identifier: Apache-2.0

package flow

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"slices"
	"testing"

	"golang.org/x/arch/x86/x86asm"
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
	text := []Part{{Address: start, Code: code}}
	loaded := []Part{text[0], {Address: start + 0x100000, Code: data}}
	aims := mustAims(t, loaded, text)
	distances := slowly(text, 1, func(p Part, i int) (uint64, bool) {
		if i+4 > bytes || !distanceMayStand(p.Code, i) {
			return 0, false
		}
		return distanceFrom(p, i), true
	})
	addresses := slowly(loaded, 4, func(p Part, i int) (uint64, bool) {
		if i+8 > bytes {
			return 0, false
		}
		return binary.LittleEndian.Uint64(p.Code[i:]), true
	})
	led, pointers := 0, 0
	for from := uint64(start); from+width < start+bytes; from += 13 {
		slow := distances.between(from, from+width)
		if got := aims.distances.between(from, from+width); !slices.Equal(got, slow) {
			t.Errorf("code to %#x: %#x, want %#x", from, got, slow)
		}
		led += len(slow)
		slow = addresses.between(from, from+width)
		if got := aims.pointers.between(from, from+width); !slices.Equal(got, slow) {
			t.Errorf("pointers to %#x: %#x, want %#x", from, got, slow)
		}
		pointers += len(slow)
	}
	if led == 0 || pointers == 0 || led > bytes/26 || pointers > bytes/26 {
		t.Errorf("%d and %d of %d: the test shows nothing", led, pointers, bytes)
	}
}

// ways are the places that lead to an address.
type ways map[uint64][]uint64

// slowly looks at all places in parts, in steps, for where they lead.
func slowly(parts []Part, step int, leads func(Part, int) (uint64, bool)) ways {
	found := make(ways)
	for _, p := range parts {
		for i := 0; i < len(p.Code); i += step {
			if to, ok := leads(p, i); ok {
				found[to] = append(found[to], p.Address+uint64(i))
			}
		}
	}
	return found
}

// between are the places that lead between two addresses.
func (w ways) between(from, to uint64) (places []uint64) {
	for address := from + 1; address < to; address++ {
		places = append(places, w[address]...)
	}
	slices.Sort(places)
	return places
}

func mustAims(t testing.TB, loaded, text []Part) *Aims {
	t.Helper()
	aims, err := NewAims(loaded, text)
	if err != nil {
		t.Fatal(err)
	}
	return aims
}

// distanceMayStand says whether, of any instruction, a distance of four bytes can stand at
// an offset.
func distanceMayStand(code []byte, i int) bool {
	switch i {
	case 0:
		return true
	case 1:
		return last[code[0]] != 0
	}
	return last[code[i-1]]&secondLast[code[i-2]] != 0
}

// Of no instruction a distance of four bytes stands where it is said that none can.
func TestDistanceMayStand(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	seen := make(map[byte]bool)
	code := make([]byte, 16)
	for range 1 << 17 {
		for i := range code {
			code[i] = byte(rng.Uint32())
		}
		if rng.IntN(2) == 0 {
			code[0] = 0x0f // half of all opcodes
		}
		inst, err := x86asm.Decode(code, 64)
		if err != nil || inst.PCRel != 4 {
			continue
		}
		seen[code[inst.PCRelOff-1]] = true
		if !distanceMayStand(code, inst.PCRelOff) {
			t.Fatalf("%s: % x has one at %d", inst, code[:inst.Len], inst.PCRelOff)
		}
	}
	for b, bits := range last {
		if bits != 0 && bits != xbegin && !seen[byte(b)] {
			t.Errorf("no instruction is seen that has one behind %#x", b)
		}
	}
}

// What is made to have more of them than any program is refused.
func TestTooManyAims(t *testing.T) {
	part := []Part{{Address: 0x1000, Code: bytes.Repeat([]byte{5, 5, 0, 0, 0, 0}, 1000)}}
	if _, err := NewAims(part, part); err == nil {
		t.Error("all of it is kept")
	}
}
