// SPDX-License-Identifier: Apache-2.0

package flow

import (
	"bytes"
	"encoding/binary"
	"slices"
	"testing"
)

// inFile is where the file of these tests numbers its code.
const inFile = 0x1000

func word32(value int32) []byte { return binary.LittleEndian.AppendUint32(nil, uint32(value)) }

func TestLoopsBack(t *testing.T) {
	loop := []byte{0x48, 0x83, 0xef, 0x01, 0x48, 0x89, 0xf8, 0x75, 0xf7, 0xc3} // 1: sub $1,%rdi; mov %rdi,%rax; jnz 1b; ret
	for name, test := range map[string]struct {
		function []byte
		want     uint64
	}{
		"to its entry":           {loop, inFile + 7},
		"behind endbr64":         {slices.Concat(landingPad, loop), inFile + 11},
		"to its endbr64":         {slices.Concat(landingPad, loop[:7], []byte{0x75, 0xf3, 0xc3}), inFile + 11},
		"behind its entry":       {[]byte{0x31, 0xc0, 0xff, 0xc0, 0x3b, 0x07, 0x75, 0xfa, 0xc3}, 0}, // 1: inc %eax; cmp (%rdi),%eax; jne 1b
		"calls itself":           {[]byte{0x31, 0xc0, 0x53, 0xe8, 0xf8, 0xff, 0xff, 0xff, 0x5b, 0xc3}, 0},
		"without any":            {[]byte{0x55, 0x48, 0x89, 0xe5, 0x31, 0xc0, 0x5d, 0xc3}, 0},
		"that is no code at all": {append(bytes.Clone(loop), 0x06), 0},
	} {
		entry := inFile + uint64(LandingPad(test.function))
		if at, ok := LoopsBack(Part{Address: inFile, Code: test.function}, entry); at != test.want || ok != (test.want != 0) {
			t.Errorf("%s: %#x, %v; want %#x", name, at, ok, test.want)
		}
	}
}

func TestNames(t *testing.T) {
	code := slices.Concat(
		[]byte{0x48, 0x8d, 0x05}, word32(0x2000-inFile-7), // lea 0x2000(%rip), %rax
		[]byte{0x48, 0x8b, 0x0d}, word32(0x3000-inFile-14), // mov 0x3000(%rip), %rcx
		[]byte{0xb8}, word32(0x4000), // mov $0x4000, %eax
		[]byte{0xc3})
	computed, memory, err := Names(Part{Address: inFile, Code: code})
	if err != nil || !slices.Equal(computed, []uint64{0x2000, 0x4000}) || !slices.Equal(memory, []uint64{0x3000}) {
		t.Errorf("%#x, %#x, %v", computed, memory, err)
	}
	if _, _, err := Names(Part{Address: inFile, Code: []byte{0x06}}); err == nil {
		t.Errorf("no code: %v", err)
	}
}
