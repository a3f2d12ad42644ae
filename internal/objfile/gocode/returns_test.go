// SPDX-License-Identifier: Apache-2.0

package gocode_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/attune-hpc/attune/internal/objfile"
	"github.com/attune-hpc/attune/internal/objfile/gocode"
	"github.com/attune-hpc/attune/internal/testing/files"
)

// mustBuild compiles the test program.
func mustBuild(t testing.TB, flags ...string) *objfile.File {
	t.Helper()
	dir := t.TempDir()
	source := files.Read(t, "testdata/program.go.txt")
	files.Write(t, filepath.Join(dir, "main.go"), source, 0o600)
	binary := filepath.Join(dir, "program")
	cmd := exec.Command("go", append(append([]string{"build", "-o", binary}, flags...), filepath.Join(dir, "main.go"))...)
	cmd.Env = append(os.Environ(), "GOOS=linux", "CGO_ENABLED=0", "GOFLAGS=")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	f, err := objfile.Open(binary)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

func mustFind(t testing.TB, f *objfile.File, name string) objfile.Symbol {
	t.Helper()
	found, err := f.Lookup(name, objfile.LookupOptions{Kind: objfile.Function})
	if err != nil || len(found) != 1 {
		t.Fatalf("%s: %+v, %v", name, found, err)
	}
	return found[0]
}

// TestReturns compares with the toolchain's own disassembler.
func TestReturns(t *testing.T) {
	tests := map[string][]string{
		"amd64":             nil,
		"amd64 PIE":         {"-buildmode=pie"},
		"amd64 unoptimised": {"-gcflags=-N -l"},
	}
	for name, flags := range tests {
		t.Run(name, func(t *testing.T) {
			f := mustBuild(t, flags...)
			twice := mustFind(t, f, "main.Twice")
			returns, err := gocode.Returns(f, twice)
			if err != nil {
				t.Fatal(err)
			}
			out, err := exec.Command("go", "tool", "objdump", "-s", `^main\.Twice$`, f.Name()).Output()
			if err != nil {
				t.Fatal(err)
			}
			want := 0
			for line := range strings.Lines(string(out)) {
				fields := strings.Fields(line)
				if len(fields) > 3 && fields[3] == "RET" {
					want++
				}
			}
			if len(returns) != want || want < 2 {
				t.Errorf("%d returns, the toolchain says %d\n%s", len(returns), want, out)
			}
			if _, err := gocode.Returns(f, mustFind(t, f, "main.Never")); !errors.Is(err, gocode.ErrReturns) {
				t.Errorf("a function that never returns: %v", err)
			}
		})
	}
}

// TestStripped finds the same function at the same place without symbols.
func TestStripped(t *testing.T) {
	for name, flags := range map[string][]string{"fixed addresses": nil, "PIE": {"-buildmode=pie"}} {
		t.Run(name, func(t *testing.T) {
			f := mustBuild(t, flags...)
			want := mustFind(t, f, "main.Twice")
			stripped := filepath.Join(t.TempDir(), "stripped")
			if out, err := exec.Command("strip", "-o", stripped, f.Name()).CombinedOutput(); err != nil {
				t.Fatalf("strip: %v\n%s", err, out)
			}
			bare, err := objfile.Open(stripped)
			if err != nil {
				t.Fatal(err)
			}
			defer bare.Close()
			got := mustFind(t, bare, "main.Twice")
			if got.Value != want.Value || got.Size < want.Size || got.Size > want.Size+64 {
				t.Errorf("at %#x with %d bytes, want %#x with %d", got.Value, got.Size, want.Value, want.Size)
			}
			before, err := gocode.Returns(f, want)
			if err != nil {
				t.Fatal(err)
			}
			after, err := gocode.Returns(bare, got)
			if diff := cmp.Diff(len(before), len(after)); diff != "" || err != nil {
				t.Errorf("%v, %v", after, err)
			}
		})
	}
}

// FuzzCode decodes nonsense as code and breaks .gopclntab.
func FuzzCode(f *testing.F) {
	built := mustBuild(f, "-ldflags=-s")
	whole := files.Read(f, built.Name())
	twice := mustFind(f, built, "main.Twice")
	table, _, _ := built.SectionAddress(".gopclntab")
	at, _ := built.Offset(table, 1)
	f.Add([]byte{0xc3, 0x0f, 0x1f}, []byte{0xf1, 0xff, 0xff, 0xff})
	f.Add([]byte{0xe9, 0xff, 0xff, 0xff, 0x7f}, []byte(nil))
	path := filepath.Join(f.TempDir(), "broken")
	f.Fuzz(func(t *testing.T, code, head []byte) {
		broken := append([]byte(nil), whole...)
		copy(broken[twice.FileOffset:twice.FileOffset+twice.Size], code)
		copy(broken[at:at+72], head)
		files.Write(t, path, broken, 0o600)
		file, err := objfile.Open(path)
		if err != nil {
			return
		}
		defer file.Close()
		returns, err := gocode.Returns(file, twice)
		for _, r := range returns {
			if err != nil || r < twice.FileOffset || r >= twice.FileOffset+twice.Size {
				t.Errorf("return at %#x, %v", r, err)
			}
		}
		file.Lookup("main.*", objfile.LookupOptions{Kind: objfile.Function})
	})
}
