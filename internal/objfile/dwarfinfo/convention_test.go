// SPDX-License-Identifier: Apache-2.0

package dwarfinfo_test

import (
	"bytes"
	"debug/dwarf"
	"encoding/binary"
	"errors"
	"testing"

	"github.com/attune-hpc/attune/internal/objfile"
	"github.com/attune-hpc/attune/internal/objfile/dwarfinfo"
	"github.com/attune-hpc/attune/internal/testing/hostile"
)

// Abbreviations of a function that says how it is called, and of one made of it.
const (
	aCalled = aFormal + 1 + iota
	aDeclared
	aMade
)

// TestCallingConvention: a function that is not called as its source says, as Clang marks
// those of which it has removed parameters, tells nothing of its parameters.
func TestCallingConvention(t *testing.T) {
	table := bytes.Join([][]byte{
		abbreviations[:len(abbreviations)-1],
		abbreviation(aCalled, dwarf.TagSubprogram, false, byte(dwarf.AttrLowpc), formAddr, byte(dwarf.AttrCalling), formData1),
		abbreviation(aDeclared, dwarf.TagSubprogram, false, byte(dwarf.AttrCalling), formData1),
		abbreviation(aMade, dwarf.TagSubprogram, false, byte(dwarf.AttrLowpc), formAddr, byte(dwarf.AttrAbstractOrigin), formRef4),
		{0},
	}, nil)
	called := func(how byte) func(e *entries) {
		return func(e *entries) { e.add(aCalled, append(address(), how)...) }
	}
	for name, test := range map[string]struct {
		build func(e *entries)
		err   error
	}{
		"normal":       {called(1), nil},
		"main program": {called(2), nil},
		"no call":      {called(3), dwarfinfo.ErrUnsupported},
		"of a vendor":  {called(0xc1), dwarfinfo.ErrUnsupported},
		"no call, says its origin": {func(e *entries) {
			origin := e.add(aDeclared, 3)
			e.add(aMade, binary.LittleEndian.AppendUint32(address(), origin)...)
		}, dwarfinfo.ErrUnsupported},
	} {
		t.Run(name, func(t *testing.T) {
			e := new(entries)
			e.add(aUnit, append(address(), 100)...)
			test.build(e)
			e.data = append(e.data, 0)
			content := append(unitHeader(len(e.data), 0), e.data...)
			_, info := mustInfo(t, hostile.Write(t, hostile.ELF(debugSections(content, table, nil)...)))
			_, err := info.Function(objfile.Symbol{Name: "f", Value: hostile.Text})
			if !errors.Is(err, test.err) {
				t.Errorf("%v, want %v", err, test.err)
			}
		})
	}
}
