// SPDX-License-Identifier: Apache-2.0

package patch

import (
	"encoding/binary"
	"slices"
	"testing"
)

// described returns a block with a description that a process wrote behind it.
func described(text string) []byte {
	block := make([]byte, HeadBytes, HeadBytes+len(text))
	binary.LittleEndian.PutUint16(block[blockDescription:], uint16(len(text)))
	copy(block[blockMagic:], magic)
	return append(block, text...)
}

// tooMany arguments for the registers.
const tooMany = `{"Target":1,"Arguments":[{},{},{},{},{},{},{}]}`

var hostile = []struct{ name, text string }{
	{"nothing", ``},
	{"no action", `{"steps":[{"name":"x"}]}`},
	{"too many arguments", `{"steps":[{"name":"x","call":` + tooMany + `}]}`},
	{"behind a good action", `{"steps":[{"name":"x","parameter":{"Number":0},"call":` + tooMany + `}]}`},
	{"two good actions", `{"steps":[{"name":"x","remove":{},"replace":{"Target":1}}]}`},
	{"register that is not there", `{"steps":[{"name":"x","parameter":{"Number":6}}]}`},
}

func TestHostileDescription(t *testing.T) {
	for _, test := range hostile {
		t.Run(test.name, func(t *testing.T) {
			if p, err := ProgramOf(described(test.text)); err == nil {
				t.Errorf("%+v, want an error", p)
			}
		})
	}
	short := described("{}")
	binary.LittleEndian.PutUint16(short[blockDescription:], 3)
	if p, err := ProgramOf(short); err == nil {
		t.Errorf("longer than the program: %+v, want an error", p)
	}
}

// A window with programs of one giver, and with what a process wrote there: the numbers of
// another giver are found, each once, and none where nothing is measured.
func TestNumbersOfOthers(t *testing.T) {
	const mine, other = "mine", "other"
	site, err := Examine(entry, code([]byte{0x55}))
	if err != nil {
		t.Fatal(err)
	}
	made := func(p Program) []byte {
		program, err := p.Code(site, site.Address+1<<20, Environment{})
		if err != nil {
			t.Fatal(err)
		}
		return program
	}
	whole := described("")
	whole[blockSlots] = 0xff
	first := blockNumber + 1
	for _, test := range []struct {
		name    string
		content []byte
		want    []int
	}{
		{"none", nil, nil},
		{"mine", made(Program{Numbers: []uint32{1}, Giver: mine}), nil},
		{"another's", made(Program{Numbers: []uint32{1}, Giver: other}), []int{first}},
		{"nobody's", made(Program{Numbers: []uint32{1}}), []int{first}},
		{"of two points", made(Program{Numbers: []uint32{1, 2}, Giver: other}), []int{first, first + blockBytes}},
		{"an action", made(Program{Steps: []Step{{Name: "x", Remove: &Remove{}}}}), nil},
		{"no description", described(""), []int{first}},
		{"more slots than there are", whole, []int{first}},
		{"half a block", described("")[:blockBytes-1], nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			window := append(make([]byte, SlotBytes), test.content...)
			for i := range test.want {
				test.want[i] += SlotBytes
			}
			got := NumbersOfOthers(window, mine)
			if !slices.Equal(got, test.want) {
				t.Fatalf("found %v, want %v", got, test.want)
			}
			for _, at := range got {
				window[at] = NoNumber
			}
			if again := NumbersOfOthers(window, mine); len(again) > 0 {
				t.Errorf("found again: %v", again)
			}
		})
	}
}

// FuzzProgramOf makes the program again that a description tells of, as a
// controller does that finds the patch in a process.
func FuzzProgramOf(f *testing.F) {
	site, err := Examine(entry, code([]byte{0x55}))
	if err != nil {
		f.Fatal(err)
	}
	for _, test := range hostile {
		f.Add(test.text)
	}
	for _, step := range []Step{
		{Name: "x", Parameter: &Parameter{Number: 1, Old: new(uint64), Width: 4}},
		{Name: "x", Call: &Call{Target: 1, Arguments: []Argument{{Source: Text, Text: "x"}, {Source: FromParameter, Class: Real}}}},
		{Name: "x", Remove: &Remove{Callers: []Range{{1, 2}}}},
		{Name: "x", Replace: &Replace{Target: 1}},
	} {
		f.Add(Program{Numbers: []uint32{1}, Steps: []Step{step}}.Key())
	}
	f.Fuzz(func(t *testing.T, text string) {
		p, err := ProgramOf(described(text))
		if err != nil {
			return
		}
		made, err := p.Code(site, site.Address+1<<20, Environment{ErrnoLocation: 1, XSave: true})
		if err != nil {
			return
		}
		if found := NumbersOfOthers(made, p.Giver); len(found) > 0 {
			t.Errorf("its own numbers are another's: %v", found)
		}
		again, err := ProgramOf(made)
		if err != nil || again.Key() != p.Key() || len(made) > MaxProgramBytes {
			t.Errorf("%d bytes of %s, %v; want %s", len(made), again.Key(), err, p.Key())
		}
	})
}
