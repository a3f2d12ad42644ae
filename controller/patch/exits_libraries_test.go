// SPDX-License-Identifier: Apache-2.0

package patch

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/attune-hpc/attune/internal/objfile"
)

// partOf reads the code of a symbol.
func partOf(t *testing.T, file *objfile.File, s objfile.Symbol) Part {
	t.Helper()
	code := make([]byte, s.Size)
	if _, err := file.ReadAt(code, int64(s.FileOffset)); err != nil {
		t.Fatal(err)
	}
	return Part{Address: s.Value, Code: code}
}

var numbers = regexp.MustCompile(`\+?0x[0-9a-f]+|[0-9]+`)

// mustDisassemble tells where instructions begin; nil where nobody can.
func mustDisassemble(t *testing.T, path string) map[uint64]uint64 {
	t.Helper()
	if _, err := exec.LookPath("objdump"); err != nil {
		return nil
	}
	if info, err := os.Stat(path); err != nil || info.Size() > 3<<20 {
		return nil // takes half a minute
	}
	return boundaries(t, path)
}

// TestRealExits finds the exits of every function of real libraries, and says
// how many have all of theirs found, and patched wherever the kernel puts the
// library.
func TestRealExits(t *testing.T) {
	for _, path := range libraries(t) {
		t.Run(filepath.Base(path), func(t *testing.T) {
			file, err := objfile.Open(path)
			if err != nil {
				t.Fatal(err)
			}
			defer file.Close()
			outline, err := file.Outline()
			if err != nil {
				t.Fatal(err)
			}
			all, err := file.Match("*", objfile.Function)
			if err != nil && len(all) == 0 {
				t.Fatal(err)
			}
			found, exits, near, reasons := 0, 0, 0, map[string]int{}
			n, next := 0, mustDisassemble(t, path)
			for _, s := range all {
				if s.Size == 0 || !s.InFile || s.IFunc() {
					continue
				}
				n++
				var cold []Part
				for _, c := range outline.Cold(s) {
					cold = append(cold, partOf(t, file, c))
				}
				e, err := Exits(partOf(t, file, s), cold, outline.Begins)
				if err != nil {
					reasons[numbers.ReplaceAllString(err.Error(), "N")]++
					continue
				}
				found++
				exits += len(e)
				last := s.Value
				for _, x := range e {
					if next != nil && next[x.Address] == 0 {
						t.Errorf("%s: its exit at %#x is no instruction", s.Name, x.Address)
					}
					if x.Address < last+JumpBytes {
						near++
					}
					last = x.Address
				}
			}
			t.Logf("all exits of %d of %d functions are found, %d in all, of which %d are too near to another or the entry", found, n, exits, near)
			for reason, count := range reasons {
				t.Logf("%d: %s", count, reason)
			}
			if found*100 < n*40 {
				t.Errorf("the exits of only %d of %d functions are found", found, n)
			}
		})
	}
}
