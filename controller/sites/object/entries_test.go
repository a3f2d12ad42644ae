// SPDX-License-Identifier: Apache-2.0

package object

import (
	"testing"

	"github.com/attune-hpc/attune/controller/patch"
	"github.com/attune-hpc/attune/internal/objfile"
)

// BenchmarkEntries finds out of a hundred functions of a program, opened anew each
// time, whether a whole jump can be written at their entries.
func BenchmarkEntries(b *testing.B) {
	const path = "/usr/bin/python3"
	file, err := objfile.Open(path)
	if err != nil {
		b.Skip(err)
	}
	found, err := file.Functions("Py*")
	if err != nil || len(found) < 100 {
		b.Fatal(len(found), err)
	}
	b.ReportAllocs()
	for b.Loop() {
		file, err := objfile.Open(path)
		if err != nil {
			b.Fatal(err)
		}
		o := &Object{File: file}
		wide := 0
		for i := range 100 {
			f := found[i*len(found)/100]
			code, err := o.Code(f, patch.SiteBytes)
			if err != nil {
				b.Fatal(err)
			}
			around, err := o.Around(f, f.Value)
			if err != nil {
				b.Fatal(err)
			}
			if _, err = patch.Wide(f.Value, code[:min(uint64(len(code)), f.Size)], around, bias); err == nil {
				wide++
			}
		}
		b.ReportMetric(float64(wide), "wide")
		if err := o.Close(); err != nil {
			b.Fatal(err)
		}
	}
}
