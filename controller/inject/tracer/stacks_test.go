// SPDX-License-Identifier: Apache-2.0

package tracer

import (
	"testing"

	"github.com/attune-hpc/attune/internal/objfile"
)

const someMaps = `55d0c0000000-55d0c0002000 r-xp 00000000 fe:00 11 /bin/program
55d0c1000000-55d0c1021000 rw-p 00000000 00:00 0                          [heap]
7f0000000000-7f0000001000 ---p 00000000 00:00 0 
7f0000001000-7f0000801000 rw-p 00000000 00:00 0 
7f0000801000-7f0000901000 rw-p 00000000 fe:00 12 /a/file
7f0000a00000-7f0000a01000 rw-p 00000000 00:00 0 
7f0000b00000-7f0000b01000 ---p 00000000 fe:00 12 /a/library
7f0000b01000-7f0000b05000 rw-p 00000000 00:00 0 
7f0000c00000-7f0000c01000 ---p 00000000 00:00 0 
7f0000c01000-7f0000c05000 rw-p 00000000 00:00 0                          [anon:a name]
7ffd00000000-7ffd00021000 rw-p 00000000 00:00 0                          [stack]
`

func TestStacks(t *testing.T) {
	mappings, err := objfile.ParseMaps([]byte(someMaps))
	if err != nil {
		t.Fatal(err)
	}
	var s stacks
	s.main, s.guarded = stacksIn(mappings)
	s.threads = map[int]bool{5: true, 6: true}
	for _, row := range []struct {
		name           string
		tid            int
		pointer, block uint64
		want           Span
	}{
		{"first thread", 5, 0x7ffd00020000, 0x7f0000a00800, Span{0x7ffd00000000, 0x7ffd00021000}},
		{"another thread there", 6, 0x7ffd00020000, 0x7f0000a00800, Span{}},
		{"thread of libc", 6, 0x7f0000800000, 0x7f0000800700, Span{0x7f0000001000, 0x7f0000800700}},
		{"thread with a named stack", 6, 0x7f0000c04000, 0x7f0000c04700, Span{0x7f0000c01000, 0x7f0000c04700}},
		{"a thread that came later", 7, 0x7f0000800000, 0x7f0000800700, Span{}},
		{"without a guard", 6, 0x7f0000a00600, 0x7f0000a00800, Span{}},
		{"above a hole of a library", 6, 0x7f0000b01600, 0x7f0000b01800, Span{}},
		{"coroutine", 6, 0x55d0c1000800, 0x7f0000800700, Span{}},
		{"alternate signal stack elsewhere", 6, 0x7f0000c02000, 0x7f0000800700, Span{}},
		{"above the thread's block", 6, 0x7f0000800800, 0x7f0000800700, Span{}},
		{"at the guard", 6, 0x7f0000000800, 0x7f0000800700, Span{}},
		{"nowhere", 6, 0x1000, 0x7f0000800700, Span{}},
	} {
		if got := s.of(5, row.tid, row.pointer, row.block); got != row.want {
			t.Errorf("%s: %#x, want %#x", row.name, got, row.want)
		}
	}
	if none := newStacks(1 << 30); none.of(5, 5, 0x7ffd00020000, 0) != (Span{}) {
		t.Error("a process that is not there has a stack")
	}
}
