// SPDX-License-Identifier: Apache-2.0

package patch

import (
	"errors"
	"testing"
)

func TestStretch(t *testing.T) {
	for _, test := range []struct{ landing, start, end uint64 }{
		{0x10000, 0x10000, 0x11000},
		{0x10ffa, 0x10000, 0x11000},
		{0x10ffb, 0x10000, 0x12000}, // its jump crosses the border
	} {
		if start, end := Stretch(test.landing); start != test.start || end != test.end {
			t.Errorf("stretch of %#x: %#x to %#x, want %#x to %#x", test.landing, start, end, test.start, test.end)
		}
	}
}

func TestArenaGivesEachItsOwn(t *testing.T) {
	a := &Arena{Start: 0x10000, End: 0x12000}
	var taken []span
	for landing := uint64(0x10010); ; landing += 16 {
		pointer, err := a.Take(landing)
		if err != nil {
			if !errors.Is(err, ErrUnpatchable) {
				t.Fatal(err)
			}
			break
		}
		if pointer%8 != 0 {
			t.Fatalf("pointer at %#x is not aligned", pointer)
		}
		for _, mine := range []span{{landing, landing + LandingBytes}, {pointer, pointer + 8}} {
			if mine.start < a.Start || mine.end > a.End {
				t.Fatalf("%#x is outside the arena", mine.start)
			}
			for _, other := range taken {
				if mine.start < other.end && other.start < mine.end {
					t.Fatalf("%#x was given twice", mine.start)
				}
			}
			taken = append(taken, mine)
		}
	}
	if len(taken) < 2*90 {
		t.Errorf("room for %d patches in two pages, want more", len(taken)/2)
	}
	if _, err := a.Take(0x11ffe); err == nil {
		t.Error("a landing that reaches out of the arena was taken")
	}
}

func TestPlaceable(t *testing.T) {
	regions := []Region{
		{Start: 0x400000, End: 0x500000},
		{Start: 0x1000000, End: 0x1100000, Grows: Upward},
		{Start: 0x7ffff0000000, End: 0x7ffff0100000, Grows: Downward},
		{Start: 0x700000000000, End: 0x700000100000, Grows: Downward, Room: 1 << 30},
	}
	for _, test := range []struct {
		name       string
		start, end uint64
		ok         bool
	}{
		{"free", 0x40000000, 0x40002000, true},
		{"touches", 0x500000, 0x502000, true},
		{"overlaps", 0x4ff000, 0x501000, false},
		{"where the heap will be", 0x1200000, 0x1202000, false},
		{"below the heap", 0xf00000, 0xf02000, true},
		{"where the stack will be", 0x7fffeff00000, 0x7fffeff02000, false},
		{"below a stack", 0x7fffe0000000, 0x7fffe0002000, true},
		{"where a large stack will be", 0x6fffe0000000, 0x6fffe0002000, false},
		{"below everything", 0x1000, 0x3000, false},
		{"wrapped around", 0xfffffffff0000000, 0xfffffffff0002000, false},
	} {
		if err := Placeable(test.start, test.end, regions); (err == nil) != test.ok {
			t.Errorf("%s: %v", test.name, err)
		}
	}
}

func TestUnused(t *testing.T) {
	content := make([]byte, PageBytes)
	if !Unused(content) {
		t.Error("an empty arena is in use")
	}
	content[len(content)-1] = 1
	if !Unused(content) {
		t.Error("a pointer to which no landing leads makes an arena used")
	}
	content[100] = 0xff
	if Unused(content) {
		t.Error("an arena with a landing is unused")
	}
}
