// SPDX-License-Identifier: Apache-2.0

package dwarfinfo_test

import (
	"bytes"
	"debug/dwarf"
	"debug/elf"
	"encoding/binary"
	"errors"
	"testing"

	"github.com/attune-hpc/attune/internal/objfile"
	"github.com/attune-hpc/attune/internal/objfile/dwarfinfo"
	"github.com/attune-hpc/attune/internal/testing/hostile"
)

const mega = 1 << 20

// Forms of attributes (DWARF 5, 7.5.6).
const (
	formAddr, formData1, formRef4, formString, formStrp, formExprloc, formFlagPresent = 0x01, 0x0b, 0x13, 0x08, 0x0e, 0x18, 0x19
	formImplicitConst                                                                 = 0x21
)

// abbreviation is one with its attributes and their forms, in turn.
func abbreviation(code byte, tag dwarf.Tag, children bool, pairs ...byte) []byte {
	has := byte(0)
	if children {
		has = 1
	}
	return append(append([]byte{code, byte(tag), has}, pairs...), 0, 0)
}

// Abbreviations of what the attacks are made of.
const (
	aUnit = iota + 1
	aFunction
	aParameter
	aTypedef
	aConst
	aArray
	aFunctionType
	aPointer
	aBlock
	aFormal
)

var abbreviations = bytes.Join([][]byte{
	abbreviation(aUnit, dwarf.TagCompileUnit, true, byte(dwarf.AttrLowpc), formAddr, byte(dwarf.AttrHighpc), formData1),
	abbreviation(aFunction, dwarf.TagSubprogram, true, byte(dwarf.AttrLowpc), formAddr),
	abbreviation(aParameter, dwarf.TagFormalParameter, false, byte(dwarf.AttrName), formString, byte(dwarf.AttrType), formRef4),
	abbreviation(aTypedef, dwarf.TagTypedef, false, byte(dwarf.AttrType), formRef4),
	abbreviation(aConst, dwarf.TagConstType, false, byte(dwarf.AttrType), formRef4),
	abbreviation(aArray, dwarf.TagArrayType, true, byte(dwarf.AttrType), formRef4),
	abbreviation(aFunctionType, dwarf.TagSubroutineType, true),
	abbreviation(aPointer, dwarf.TagPointerType, false, byte(dwarf.AttrType), formRef4),
	abbreviation(aBlock, dwarf.TagLexDwarfBlock, true),
	abbreviation(aFormal, dwarf.TagFormalParameter, false, byte(dwarf.AttrType), formRef4),
	{0},
}, nil)

// unitHeader is that of a unit of DWARF 4 whose entries follow.
func unitHeader(entries int, table uint32) []byte {
	h := binary.LittleEndian.AppendUint32(nil, uint32(entries+7))
	h = binary.LittleEndian.AppendUint16(h, 4)
	h = binary.LittleEndian.AppendUint32(h, table)
	return append(h, 8)
}

// firstEntry is where the entries of a unit begin.
const firstEntry = 11

// entries builds the entries of a unit, whose function is at the beginning of the text.
type entries struct{ data []byte }

func (e *entries) at() uint32 { return uint32(firstEntry + len(e.data)) }
func (e *entries) add(code byte, more ...byte) uint32 {
	at := e.at()
	e.data = append(append(e.data, code), more...)
	return at
}

func (e *entries) ref(code byte, to uint32) uint32 {
	return e.add(code, binary.LittleEndian.AppendUint32(nil, to)...)
}

func address() []byte { return binary.LittleEndian.AppendUint64(nil, hostile.Text) }

// ofType is the debug information of a function with one parameter; build adds the types
// and returns the parameter's.
func ofType(build func(e *entries) uint32) []byte {
	e := new(entries)
	e.add(aUnit, append(address(), 100)...)
	to := build(e)
	e.add(aFunction, address()...)
	e.ref(aParameter, 0)
	e.data = append(e.data[:len(e.data)-4], 'p', 0)
	e.data = binary.LittleEndian.AppendUint32(e.data, to)
	e.data = append(e.data, 0, 0)
	return append(unitHeader(len(e.data), 0), e.data...)
}

func selfOf(code byte, more ...byte) func(e *entries) uint32 {
	return func(e *entries) uint32 {
		at := e.ref(code, e.at())
		e.data = append(e.data, more...)
		return at
	}
}

// chain is a type that leads over so many others.
func chain(code byte, length int) func(e *entries) uint32 {
	return func(e *entries) uint32 {
		first := e.at()
		for range length {
			e.ref(code, e.at()+5)
		}
		e.ref(aPointer, e.at())
		return first
	}
}

// nested are functions whose two parameters both have the next one's type.
func nested(depth int) func(e *entries) uint32 {
	return func(e *entries) uint32 {
		first := e.at()
		for range depth {
			const size = 1 + 5 + 5 + 1
			next := e.at() + size
			e.add(aFunctionType)
			e.ref(aFormal, next)
			e.ref(aFormal, next)
			e.data = append(e.data, 0)
		}
		e.add(aFunctionType)
		e.data = append(e.data, 0)
		return first
	}
}

func deepBlocks(e *entries) uint32 {
	to := e.ref(aPointer, e.at())
	e.add(aFunctionType)
	e.data = append(e.data, bytes.Repeat([]byte{aBlock}, 30*mega)...)
	return to
}

func debugSections(info, abbrev, str []byte) []hostile.Section {
	return []hostile.Section{
		{Name: ".debug_info", Type: elf.SHT_PROGBITS, Content: info}, {Name: ".debug_abbrev", Type: elf.SHT_PROGBITS, Content: abbrev},
		{Name: ".debug_str", Type: elf.SHT_PROGBITS, Content: str},
	}
}

// overlapping are units of which each has a table of abbreviations that is the end of
// the one before.
func overlapping(count int) []hostile.Section {
	var info []byte
	abbrev := bytes.Repeat(abbreviation(1, dwarf.TagBaseType, false), count)
	for i := range count {
		info = append(append(info, unitHeader(1, uint32(i*5))...), 0)
	}
	return debugSections(info, append(abbrev, 0), nil)
}

// wide has entries of a byte that have very many attributes.
func wide() []hostile.Section {
	entry := append([]byte{1, byte(dwarf.TagCompileUnit), 0}, bytes.Repeat([]byte{byte(dwarf.AttrExternal), formFlagPresent}, mega)...)
	info := bytes.Repeat([]byte{1}, mega)
	return debugSections(append(unitHeader(len(info), 0), info...), append(entry, 0, 0, 0), nil)
}

// hidden has a table that seems to end at once, unless a form of more than 32 bits is taken
// for what debug/dwarf takes it for, and goes on with an entry of very many attributes.
func hidden(form ...byte) []hostile.Section {
	first := append([]byte{1, byte(dwarf.TagCompileUnit), 0, byte(dwarf.AttrExternal)}, form...)
	first = append(first, 0, 0, 0) // a constant and the end; or the end, and that of the table
	more := append([]byte{2, byte(dwarf.TagCompileUnit), 0}, bytes.Repeat([]byte{byte(dwarf.AttrExternal), formFlagPresent}, mega)...)
	info := bytes.Repeat([]byte{2}, mega)
	return debugSections(append(unitHeader(len(info), 0), info...), append(append(first, more...), 0, 0, 0), nil)
}

// repeated has entries whose attributes are all one text without end.
func repeated() []hostile.Section {
	entry := append([]byte{1, byte(dwarf.TagCompileUnit), 0}, bytes.Repeat([]byte{byte(dwarf.AttrName), formStrp}, 200)...)
	info := append([]byte{1}, make([]byte, 800)...)
	return debugSections(append(unitHeader(len(info), 0), info...), append(entry, 0, 0, 0), append(bytes.Repeat([]byte("a"), 32*mega), 0))
}

// inflated are sections that become half a gigabyte each.
func inflated(t testing.TB) (all []hostile.Section) {
	bomb := hostile.Bomb(300*mega, 300*mega)
	for _, name := range []string{"abbrev", "info", "str", "ranges", "addr", "line_str", "rnglists", "str_offsets"} {
		all = append(all, hostile.Section{Name: ".debug_" + name, Type: elf.SHT_PROGBITS, Flags: elf.SHF_COMPRESSED, Content: bomb})
	}
	return all
}

// TestHostile: debug information that no compiler writes costs a bounded amount, and is
// looked at once.
func TestHostile(t *testing.T) {
	types := func(build func(e *entries) uint32) []hostile.Section {
		return debugSections(ofType(build), abbreviations, nil)
	}
	for name, test := range map[string]struct {
		file    []hostile.Section
		allowed uint64
		err     error
	}{
		"a pointer to itself": {types(selfOf(aPointer)), 4 * mega, nil},
		"a typedef of itself": {types(selfOf(aTypedef)), 4 * mega, objfile.ErrCorrupt},
		"const of itself":     {types(selfOf(aConst)), 4 * mega, objfile.ErrCorrupt},
		"an array of itself":  {types(selfOf(aArray, 0)), 4 * mega, objfile.ErrCorrupt},
		"a function of itself": {types(func(e *entries) uint32 {
			at := e.add(aFunctionType)
			e.ref(aFormal, at)
			e.data = append(e.data, 0)
			return at
		}), 4 * mega, nil},
		"functions of functions":        {types(nested(60)), 4 * mega, nil},
		"a million pointers":            {types(chain(aPointer, mega)), 128 * mega, dwarfinfo.ErrUnsupported},
		"ten million blocks deep":       {types(deepBlocks), 64 << 30, dwarfinfo.ErrUnsupported},
		"units with one table each":     {overlapping(40_000), 64 * mega, dwarfinfo.ErrUnsupported},
		"a million attributes":          {wide(), 64 * mega, dwarfinfo.ErrUnsupported},
		"attributes behind a wide form": {hidden(0x80|formImplicitConst, 0x80, 0x80, 0x80, 0x10), 64 * mega, dwarfinfo.ErrUnsupported},
		"a number of eleven bytes":      {hidden(append(bytes.Repeat([]byte{0x80}, 10), 1)...), 64 * mega, objfile.ErrCorrupt},
		"texts without end":             {repeated(), 128 * mega, dwarfinfo.ErrUnsupported},
		"sections that inflate":         {inflated(t), 64 * mega, objfile.ErrUnsupported},
	} {
		t.Run(name, func(t *testing.T) {
			file, err := objfile.Open(hostile.Write(t, hostile.ELF(test.file...)))
			if err != nil {
				t.Fatal(err)
			}
			defer file.Close()
			look := func() error {
				info, err := dwarfinfo.Open(file)
				if err == nil {
					_, err = info.Function(objfile.Symbol{Name: "f", Value: hostile.Text})
				}
				return err
			}
			hostile.Cost(t, test.allowed, func() {
				if err := look(); !errors.Is(err, test.err) {
					t.Errorf("%v, want %v", err, test.err)
				}
			})
			if !errors.Is(test.err, dwarfinfo.ErrUnsupported) {
				return
			}
			hostile.Cost(t, mega, func() { // it is remembered
				if err := look(); !errors.Is(err, test.err) {
					t.Errorf("the second time: %v, want %v", err, test.err)
				}
			})
		})
	}
}
