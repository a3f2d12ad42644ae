// SPDX-License-Identifier: Apache-2.0

package patch

import (
	"encoding/binary"
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
	for _, action := range []Action{
		Parameter{Number: 1, Old: new(uint64), Width: 4},
		Call{Target: 1, Arguments: []Argument{{Source: Text, Text: "x"}, {Source: FromParameter, Class: Real}}},
		Remove{Callers: []Range{{1, 2}}},
		Replace{Target: 1},
	} {
		f.Add(Program{Numbers: []uint32{1}, Steps: []Step{StepOf("x", action)}}.Key())
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
		again, err := ProgramOf(made)
		if err != nil || again.Key() != p.Key() || len(made) > MaxProgramBytes {
			t.Errorf("%d bytes of %s, %v; want %s", len(made), again.Key(), err, p.Key())
		}
	})
}
