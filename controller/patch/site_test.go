// SPDX-License-Identifier: Apache-2.0

package patch

import (
	"bytes"
	"errors"
	"strings"
	"testing"
)

const entry = 0x555555555000

func code(s ...[]byte) []byte {
	return append(bytes.Join(s, nil), bytes.Repeat([]byte{0x90}, SiteBytes)...)
}

func TestExamine(t *testing.T) {
	frame := []byte{0x55, 0x48, 0x89, 0xe5, 0x41} // push %rbp; mov %rsp,%rbp; ...
	tests := []struct {
		name    string
		code    []byte
		address uint64
		length  int
		landing uint64
		refused string
	}{
		{"frame pointer", code(frame), entry, 1, entry + 5 + 0x41e58948, ""},
		{"endbr64 stays", code([]byte{0xf3, 0x0f, 0x1e, 0xfa}, frame), entry + 4, 1, entry + 9 + 0x41e58948, ""},
		{"backwards", code([]byte{0xc3, 0xfc, 0xff, 0xff, 0xff}), entry, 1, entry + 1, ""},
		{"shorter than a jump", frame[:5], entry, 1, entry + 5 + 0x41e58948, ""},
		{"ten bytes", code([]byte{0x48, 0xb8, 1, 2, 3, 4, 5, 6, 7, 8}), entry, 10, entry + 5 + 0x030201b8, ""},
		{"call", code([]byte{0xe8, 0, 0, 0, 0}), 0, 0, 0, "is a call"},
		{"call through a pointer", code([]byte{0xff, 0x15, 0, 0, 0, 0}), 0, 0, 0, "is a call"},
		{"breakpoint", code([]byte{0xcc}), 0, 0, 0, "breakpoint"},
		{"loop", code([]byte{0xe2, 0xfe}), 0, 0, 0, "without a long form"},
		{"trap", code([]byte{0x0f, 0x0b}), 0, 0, 0, "this very address"},
		{"return from signal handlers", code(signalReturn), 0, 0, 0, "signal handlers"},
		{"AVX-512", code([]byte{0x62, 0xf1, 0x7c, 0x48, 0x28, 0x07}), 0, 0, 0, "unrecognized"},
		{"unknown to the decoder", code([]byte{0x0f, 0x0f, 0xc0, 0x0d}), 0, 0, 0, "unrecognized"},
		{"jump of two lengths", code([]byte{0x66, 0xe9, 1, 2, 3, 4}), 0, 0, 0, "operand-size"},
		{"32-bit relative operand", code([]byte{0x67, 0x8b, 0x05, 1, 2, 3, 4}), 0, 0, 0, "unusual form"},
		{"end of the section", []byte{0x55, 0xc3}, 0, 0, 0, "2 bytes of code"},
		{"nothing", nil, 0, 0, 0, "0 bytes of code"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			s, err := Examine(entry, test.code)
			if test.refused != "" {
				if !errors.Is(err, ErrUnpatchable) || !strings.Contains(err.Error(), test.refused) {
					t.Fatalf("error %v, want one about %q", err, test.refused)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if s.Address != test.address || s.last().Len != test.length || s.Landing != test.landing {
				t.Errorf("site %#x, %d bytes, landing %#x; want %#x, %d, %#x",
					s.Address, s.last().Len, s.Landing, test.address, test.length, test.landing)
			}
			if target, ok := JumpTarget(s.Address, s.Patched()); !ok || target != s.Landing {
				t.Errorf("the patch leads to %#x, %v", target, ok)
			}
			if !bytes.Equal(s.Patched()[1:], s.Original[1:]) {
				t.Error("a patch changes more than one byte")
			}
		})
	}
}

func TestRelocate(t *testing.T) {
	const at = entry + 0x10000
	tests := []struct {
		name string
		code []byte
		want []byte
	}{
		{"plain", []byte{0x55}, []byte{0x55, 0xe9, 0xfb, 0xff, 0xfe, 0xff}},
		{"short jump", []byte{0xeb, 0x10}, []byte{0xe9, 0x0d, 0x00, 0xff, 0xff}},
		{"conditional, short", []byte{0x74, 0xfe}, []byte{0x0f, 0x84, 0xfa, 0xff, 0xfe, 0xff, 0xe9, 0xf7, 0xff, 0xfe, 0xff}},
		{"conditional, long", []byte{0x0f, 0x85, 0, 1, 0, 0}, []byte{0x0f, 0x85, 0, 1, 0xff, 0xff, 0xe9, 0xfb, 0xff, 0xfe, 0xff}},
		{"relative operand", []byte{0x48, 0x8b, 0x05, 0, 0, 2, 0}, []byte{0x48, 0x8b, 0x05, 0, 0, 1, 0, 0xe9, 0xfb, 0xff, 0xfe, 0xff}},
		{"relative operand and constant", []byte{0x83, 0x3d, 0, 0, 2, 0, 7}, []byte{0x83, 0x3d, 0, 0, 1, 0, 7, 0xe9, 0xfb, 0xff, 0xfe, 0xff}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			s, err := Examine(entry, code(test.code))
			if err != nil {
				t.Fatal(err)
			}
			got, err := s.Relocate(at)
			if err != nil || !bytes.Equal(got, test.want) {
				t.Errorf("% x, %v; want % x", got, err, test.want)
			}
			if _, err := s.Relocate(entry + 1<<33); !errors.Is(err, errTooFar) {
				t.Errorf("8 GiB away: %v", err)
			}
		})
	}
}

func TestOverlaps(t *testing.T) {
	a, b, c := Site{Address: 100}, Site{Address: 104}, Site{Address: 105}
	if !a.Overlaps(b) || !b.Overlaps(a) || a.Overlaps(c) || c.Overlaps(a) {
		t.Error("sites overlap when the byte of one is in the jump of the other, else not")
	}
}

func FuzzExamine(f *testing.F) {
	f.Add([]byte{0x55, 0x48, 0x89, 0xe5, 0x41})
	f.Add([]byte{0xf3, 0x0f, 0x1e, 0xfa, 0xeb, 0xfe, 0, 0, 0})
	f.Add([]byte{0x48, 0x8b, 0x05, 1, 2, 3, 4})
	f.Fuzz(func(t *testing.T, raw []byte) {
		s, err := Examine(entry, raw)
		if err != nil {
			if !errors.Is(err, ErrUnpatchable) {
				t.Fatal(err)
			}
			return
		}
		mustMeanTheSame(t, s, s.Address+1<<20)
	})
}
