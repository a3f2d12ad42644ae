// SPDX-License-Identifier: Apache-2.0

package patch

import (
	"bytes"
	"errors"
	"slices"
	"testing"
)

func TestLoopsBack(t *testing.T) {
	loop := []byte{0x48, 0x83, 0xef, 0x01, 0x48, 0x89, 0xf8, 0x75, 0xf7, 0xc3} // 1: sub $1,%rdi; mov %rdi,%rax; jnz 1b; ret
	for name, test := range map[string]struct {
		function []byte
		want     uint64
	}{
		"to its entry":           {loop, inFile + 7},
		"behind endbr64":         {slices.Concat(endbr64, loop), inFile + 11},
		"to its endbr64":         {slices.Concat(endbr64, loop[:7], []byte{0x75, 0xf3, 0xc3}), inFile + 11},
		"behind its entry":       {circles, 0},
		"calls itself":           {[]byte{0x31, 0xc0, 0x53, 0xe8, 0xf8, 0xff, 0xff, 0xff, 0x5b, 0xc3}, 0},
		"without any":            {pushes, 0},
		"that is no code at all": {append(bytes.Clone(loop), 0x06), 0},
	} {
		site, err := Examine(mapped+inFile, append(bytes.Clone(test.function), make([]byte, SiteBytes)...))
		if err != nil {
			t.Fatal(err)
		}
		if at, ok := LoopsBack(Part{Address: inFile, Code: test.function}, site.Address-mapped); at != test.want || ok != (test.want != 0) {
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
	if _, _, err := Names(Part{Address: inFile, Code: []byte{0x06}}); !errors.Is(err, ErrUnpatchable) {
		t.Errorf("no code: %v", err)
	}
}
