// SPDX-License-Identifier: Apache-2.0

package access_test

import (
	"encoding/binary"
	"path/filepath"
	"slices"
	"testing"

	"github.com/attune-hpc/attune/controller/actuate/access"
	"github.com/attune-hpc/attune/internal/objfile"
	"github.com/attune-hpc/attune/internal/proc"
	"github.com/attune-hpc/attune/internal/procid"
	"github.com/attune-hpc/attune/internal/testing/files"
	"github.com/attune-hpc/attune/internal/testing/targets"
)

// TestNamesAreOfTheProgram: where a library was loaded with a C library of its own, a name is
// that of the program's.
func TestNamesAreOfTheProgram(t *testing.T) {
	source := filepath.Join(t.TempDir(), "part.c")
	files.Write(t, source, "int getpid(void); int part(void) { return getpid() > 0; }\n", 0o600)
	target := targets.StartProgram(t, "apart", targets.BuildLibrary(t, source))
	identity, err := procid.Of(target.PID)
	if err != nil {
		t.Fatal(err)
	}
	process := access.ProcessOf(identity)
	images, err := process.Images()
	if count := len(slices.DeleteFunc(images, func(i objfile.Image) bool { return !i.Matches("libc.so*") })); count != 2 || err != nil {
		t.Fatalf("%d C libraries, %v, want two", count, err)
	}
	own, err := access.Resolve(process, "apart*", "own_mallopt", objfile.Variable)
	if err != nil {
		t.Fatal(err)
	}
	address := make([]byte, 8)
	if err := proc.Read(process, own.Address, address); err != nil {
		t.Fatal(err)
	}
	want := binary.LittleEndian.Uint64(address)
	for name, find := range map[string]func(access.Process, string, string, objfile.SymbolKind) (objfile.Resolved, error){
		"resolved": access.Resolve, "looked up": access.Lookup,
	} {
		if found, err := find(process, "libc.so*", "mallopt", objfile.Function); err != nil || found.Address != want {
			t.Errorf("%s: mallopt at %#x, %v; the program's is at %#x", name, found.Address, err, want)
		}
	}
}
