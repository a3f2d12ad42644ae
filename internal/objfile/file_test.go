// SPDX-License-Identifier: Apache-2.0

package objfile_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/attune-hpc/attune/internal/objfile"
	"github.com/attune-hpc/attune/internal/testing/files"
)

func mustOpen(t testing.TB, path string) *objfile.File {
	t.Helper()
	f, err := objfile.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

type nmSymbol struct{ Value, Size uint64 }

// nm returns the symbols that a file defines, as binutils tells them.
func nm(t *testing.T, flag, path string) map[string]nmSymbol {
	t.Helper()
	symbols := make(map[string]nmSymbol)
	for line := range strings.Lines(mustRun(t, "nm", "-S", "--defined-only", "--no-demangle", flag, path)) {
		fields := strings.Fields(line)
		// The loader gives thread-local variables no address; nm marks them
		// by D or B, so they are recognised by name.
		if len(fields) != 4 || strings.HasSuffix(fields[3], "_local") {
			continue
		}
		value, err := strconv.ParseUint(fields[0], 16, 64)
		if err != nil {
			t.Fatal(err)
		}
		size, err := strconv.ParseUint(fields[1], 16, 64)
		if err != nil {
			t.Fatal(err)
		}
		symbols[fields[3]] = nmSymbol{value, size}
	}
	return symbols
}

func TestSymbolsAgreeWithNM(t *testing.T) {
	tests := []struct {
		name, path, flag string
		least            int
	}{
		{"PIE", mustBuild(t), "-a", 10},
		{"fixed addresses", mustBuild(t, "-no-pie"), "-a", 10},
		{"static", mustBuild(t, "-static"), "-a", 500},
		{"dynamic table only", mustBuild(t, "-rdynamic", "-s"), "-D", 5},
		{"SysV hash", mustBuild(t, "-rdynamic", "-s", "-Wl,--hash-style=sysv"), "-D", 5},
		{"library", mustBuildLibrary(t, "-s"), "-D", 4},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			f := mustOpen(t, test.path)
			want := nm(t, test.flag, test.path)
			if len(want) < test.least {
				t.Fatalf("nm tells %d symbols only", len(want))
			}
			for name, symbol := range want {
				got, err := f.Symbol(name)
				if err != nil {
					t.Errorf("%s: %v", name, err)
					continue
				}
				// Several local symbols may share a name in a static program.
				same := got.Value == symbol.Value && got.Size == symbol.Size
				if !same && got.Bind != 0 {
					t.Errorf("%s: %x size %d, nm tells %x size %d", name, got.Value, got.Size, symbol.Value, symbol.Size)
				}
			}
		})
	}
}

func TestSymbolFacts(t *testing.T) {
	f := mustOpen(t, mustBuild(t))
	tests := []struct {
		name                         string
		kind                         objfile.SymbolKind
		size                         uint64
		executable, writable, inFile bool
		indirect                     bool
	}{
		{"attune_function", objfile.Function, 0, true, false, true, false},
		{"attune_static", objfile.Function, 0, true, false, true, false},
		{"attune_indirect", objfile.Function, 0, true, false, true, true},
		{"attune_number", objfile.Variable, 4, false, true, true, false},
		{"attune_byte", objfile.Variable, 1, false, true, true, false},
		{"attune_table", objfile.Variable, 800, false, true, false, false},
		{"attune_constant", objfile.Variable, 9, false, false, true, false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			s, err := f.SymbolOf(test.name, test.kind)
			if err != nil {
				t.Fatal(err)
			}
			if s.Executable != test.executable || s.Writable != test.writable || s.InFile != test.inFile || s.IFunc() != test.indirect {
				t.Errorf("symbol %+v", s)
			}
			if test.size != 0 && s.Size != test.size {
				t.Errorf("size %d, want %d", s.Size, test.size)
			}
			other := objfile.Function
			if test.kind == objfile.Function {
				other = objfile.Variable
			}
			if _, err := f.SymbolOf(test.name, other); !errors.Is(err, objfile.ErrNoSymbol) {
				t.Errorf("as the other kind: %v", err)
			}
		})
	}
	if _, err := f.Symbol("attune_no"); !errors.Is(err, objfile.ErrNoSymbol) {
		t.Errorf("unknown symbol: %v", err)
	}
	if _, err := f.Symbol("puts"); !errors.Is(err, objfile.ErrNoSymbol) {
		t.Errorf("imported symbol: %v", err)
	}
}

func TestSymbolVersions(t *testing.T) {
	f := mustOpen(t, mustBuildLibrary(t, "-s"))
	tests := []struct {
		ask, version string
		standard     bool
	}{
		{"versioned", "ATTUNE_2", true},
		{"versioned@ATTUNE_2", "ATTUNE_2", true},
		{"versioned@@ATTUNE_2", "ATTUNE_2", true},
		{"versioned@ATTUNE_1", "ATTUNE_1", false},
	}
	values := make(map[string]uint64)
	for _, test := range tests {
		t.Run(test.ask, func(t *testing.T) {
			s, err := f.Symbol(test.ask)
			if err != nil {
				t.Fatal(err)
			}
			if s.Name != "versioned" || s.Version != test.version || s.Default != test.standard {
				t.Errorf("symbol %+v", s)
			}
			values[test.version] = s.Value
		})
	}
	if values["ATTUNE_1"] == values["ATTUNE_2"] {
		t.Error("both versions are one function")
	}
	if _, err := f.Symbol("versioned@ATTUNE_3"); !errors.Is(err, objfile.ErrNoSymbol) {
		t.Errorf("unknown version: %v", err)
	}
	if f.SOName() != "libattunetest.so.2" {
		t.Errorf("soname %q", f.SOName())
	}
}

// readelfSlots returns the slots by address, as binutils tells them.
func readelfSlots(t *testing.T, path string) map[uint64]string {
	t.Helper()
	slots := make(map[uint64]string)
	for line := range strings.Lines(mustRun(t, "readelf", "-rW", path)) {
		fields := strings.Fields(line)
		if len(fields) < 5 || !strings.Contains(fields[2], "JUMP_SLO") && !strings.Contains(fields[2], "GLOB_DAT") {
			continue
		}
		address, err := strconv.ParseUint(fields[0], 16, 64)
		if err != nil {
			t.Fatal(err)
		}
		slots[address], _, _ = strings.Cut(fields[4], "@")
	}
	return slots
}

func TestSlotsAgreeWithReadelf(t *testing.T) {
	tests := []struct {
		name, path  string
		relro, lazy bool // of malloc's slot
	}{
		{"lazy", mustBuildLibrary(t, "-Wl,-z,relro,-z,lazy"), false, true},
		{"full RELRO", mustBuildLibrary(t, "-Wl,-z,relro,-z,now"), true, false},
		{"full RELRO, stripped", mustBuildLibrary(t, "-Wl,-z,relro,-z,now", "-s"), true, false},
		{"no RELRO", mustBuildLibrary(t, "-Wl,-z,norelro,-z,lazy"), false, true},
		{"without PLT", mustBuildLibrary(t, "-fno-plt", "-Wl,-z,relro,-z,now"), true, false},
		{"program at fixed addresses", mustBuild(t, "-no-pie", "-Wl,-z,lazy"), false, true},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			f := mustOpen(t, test.path)
			all, err := f.GOTSlots("*")
			if err != nil {
				t.Fatal(err)
			}
			got := make(map[uint64]string)
			for _, slot := range all {
				got[slot.VirtualAddress] = slot.Symbol
			}
			if diff := cmp.Diff(readelfSlots(t, test.path), got); diff != "" {
				t.Errorf("slots (-readelf +got):\n%s", diff)
			}
			malloc, err := f.GOTSlots("malloc")
			if err != nil || len(malloc) != 1 {
				t.Fatalf("%d slots of malloc, %v", len(malloc), err)
			}
			if malloc[0].RELRO != test.relro || malloc[0].Lazy != test.lazy || f.BindNow() == test.lazy {
				t.Errorf("slot %+v, bind now %v", malloc[0], f.BindNow())
			}
		})
	}
}

func TestBuildID(t *testing.T) {
	path := mustBuild(t, "-Wl,--build-id=sha1")
	_, rest, _ := strings.Cut(mustRun(t, "readelf", "-nW", path), "Build ID: ")
	want, _, _ := strings.Cut(rest, "\n")
	if got := mustOpen(t, path).BuildID(); got == "" || got != want {
		t.Errorf("build id %q, readelf tells %q", got, want)
	}
	if got := mustOpen(t, mustBuild(t, "-Wl,--build-id=none")).BuildID(); got != "" {
		t.Errorf("build id %q of a file without", got)
	}
}

// TestNoSectionHeaders reads a file whose section headers were cut off: the
// dynamic segment and the hash table must do.
func TestNoSectionHeaders(t *testing.T) {
	for _, style := range []string{"gnu", "sysv"} {
		t.Run(style, func(t *testing.T) {
			whole := mustBuildLibrary(t, "-s", "-Wl,--hash-style="+style)
			bare := mustPatch(t, whole, func(d []byte) []byte {
				clear(d[40:48]) // e_shoff
				clear(d[60:64]) // e_shnum, e_shstrndx
				return d
			})
			for name, symbol := range nm(t, "-D", whole) {
				got, err := mustOpen(t, bare).Symbol(name)
				if err != nil || got.Value != symbol.Value {
					t.Errorf("%s: %x, %v, want %x", name, got.Value, err, symbol.Value)
				}
			}
			slots, err := mustOpen(t, bare).GOTSlots("malloc")
			if err != nil || len(slots) == 0 {
				t.Errorf("slots %v, %v", slots, err)
			}
		})
	}
}

func TestOpenRefuses(t *testing.T) {
	program := mustBuild(t)
	tests := []struct {
		name, path string
		want       error
	}{
		{"missing", "/nonexistent", os.ErrNotExist},
		{"device", "/dev/zero", objfile.ErrNotELF},
		{"text", "build_test.go", objfile.ErrNotELF},
		{"32-bit", mustPatch(t, program, func(d []byte) []byte { d[4] = 1; return d }), objfile.ErrUnsupported},
		{"big-endian", mustPatch(t, program, func(d []byte) []byte { d[5] = 2; return d }), objfile.ErrUnsupported},
		{"cut off", mustPatch(t, program, func(d []byte) []byte { return d[:40] }), objfile.ErrCorrupt},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			f, err := objfile.Open(test.path)
			if !errors.Is(err, test.want) {
				t.Errorf("error %v, want %v", err, test.want)
			}
			if err == nil {
				f.Close()
			}
		})
	}
}

func TestDigest(t *testing.T) {
	content := []byte("some program")
	path := mustWrite(t, content, 0o755)
	digests := objfile.NewDigests("")
	for _, round := range []string{"read", "remembered"} {
		got, err := digests.Digest(t.Context(), path)
		if want := fmt.Sprintf("%x", sha256.Sum256(content)); err != nil || got != want {
			t.Errorf("%s: %s, %v, want %s", round, got, err, want)
		}
	}
	changed := []byte("another program")
	files.Write(t, path, changed, 0o755)
	got, err := digests.Digest(t.Context(), path)
	if want := fmt.Sprintf("%x", sha256.Sum256(changed)); err != nil || got != want {
		t.Errorf("after a change: %s, %v, want %s", got, err, want)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := objfile.NewDigests("").Digest(ctx, path); !errors.Is(err, context.Canceled) {
		t.Errorf("with a cancelled context: %v", err)
	}
}
