// SPDX-License-Identifier: Apache-2.0

package dwarfinfo_test

import (
	"testing"

	"github.com/attune-hpc/attune/internal/objfile"
	"github.com/attune-hpc/attune/internal/objfile/dwarfinfo"
	"github.com/attune-hpc/attune/internal/testing/hostile"
)

// FuzzTypes has entries of a small vocabulary, of which a fuzzer finds out more than of a
// compiler's: types that lead to one another in all ways.
func FuzzTypes(f *testing.F) {
	for _, build := range []func(*entries) uint32{
		selfOf(aPointer), selfOf(aTypedef), selfOf(aArray, 0), chain(aConst, 10), nested(5),
	} {
		f.Add(ofType(build), abbreviations)
	}
	f.Fuzz(func(t *testing.T, info, abbrev []byte) {
		file, err := objfile.Open(hostile.Write(t, hostile.ELF(debugSections(info, abbrev, []byte("a\x00"))...)))
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		const allowed = 256 * mega
		hostile.Cost(t, allowed, func() {
			info, err := dwarfinfo.Open(file)
			if err != nil {
				return
			}
			function, err := info.Function(objfile.Symbol{Name: "f", Value: hostile.Text})
			if err == nil {
				function.Path("p->a[1].b")
			}
		})
	})
}
