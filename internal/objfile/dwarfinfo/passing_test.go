// SPDX-License-Identifier: Apache-2.0

package dwarfinfo_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/attune-hpc/attune/internal/testing/files"
	"github.com/attune-hpc/attune/internal/testing/targets"
)

// TestClasses: what C++ passes by address is in one general register.
func TestClasses(t *testing.T) {
	if runtime.GOARCH != "amd64" {
		t.Skip("registers are those of x86-64")
	}
	for _, version := range []string{"-gdwarf-4", "-gdwarf-5"} {
		f, info := mustInfo(t, targets.BuildWith(t, "g++", "classes", "testdata/classes.cc", version))
		for function, want := range map[string][]string{
			"all":  {"plain: [rdi]", "destroyed: [rsi]", "defaulted: [rdx]", "moved: [rcx]", "large: [r8]", "last: [r9]"},
			"more": {"holder: [rdi]", "dynamic: [rsi]", "between: [rdx]", "derived: []", "lost: []"},
			"made": {"first: [rsi]"},
		} {
			var got []string
			for _, p := range mustFunction(t, f, info, function).Parameters {
				got = append(got, place(p))
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s, %s: %s", version, function, diff)
			}
		}
	}
}

// TestClassesOfOtherCompilers: without marks of what is defaulted, as Clang writes DWARF 4,
// a class with a destructor may be passed in either way.
func TestClassesOfOtherCompilers(t *testing.T) {
	if runtime.GOARCH != "amd64" {
		t.Skip("registers are those of x86-64")
	}
	const flags = "-gno-record-gcc-switches" // the name alone
	marked := targets.BuildWith(t, "g++", "marked", "testdata/classes.cc", "-gdwarf-4", flags)
	strict := targets.BuildWith(t, "g++", "strict", "testdata/classes.cc", "-gdwarf-4", "-gstrict-dwarf")
	other := targets.BuildWith(t, "g++", "other", "testdata/classes.cc", "-gdwarf-4", "-gstrict-dwarf", flags)
	program := files.Read(t, other)
	program = bytes.ReplaceAll(program, []byte("GNU C++"), []byte("clang++"))
	files.Write(t, other, program, 0o600)
	for path, want := range map[string]string{marked: "[rsi] [rdx]", strict: "[] []", other: "[] []"} {
		f, info := mustInfo(t, path)
		p := mustFunction(t, f, info, "all").Parameters
		if got := fmt.Sprint(registers(p[1]), registers(p[2])); got != want {
			t.Errorf("%s: destroyed and defaulted are in %s, want %s", filepath.Base(path), got, want)
		}
	}
}

// TestDeclaredMembers: how an object is passed is not known where a member's class is not.
func TestDeclaredMembers(t *testing.T) {
	if runtime.GOARCH != "amd64" {
		t.Skip("registers are those of x86-64")
	}
	f, info := mustInfo(t, targets.BuildWith(t, "g++", "declared", "testdata/declared.cc", "-g", "-femit-struct-debug-baseonly"))
	var got []string
	for _, p := range mustFunction(t, f, info, "declared").Parameters {
		got = append(got, place(p))
	}
	if diff := cmp.Diff([]string{"o: []", "n: []"}, got); diff != "" {
		t.Error(diff)
	}
}

// TestGoParameters: Go has a register for each member, in an order of its own, which is
// known for single values.
func TestGoParameters(t *testing.T) {
	if runtime.GOARCH != "amd64" {
		t.Skip("registers are those of x86-64")
	}
	dir := t.TempDir()
	source, program := filepath.Join(dir, "main.go"), filepath.Join(dir, "program")
	text := `package main

//go:noinline
func parts(n int, f float64, text string, behind int) (sum int) {
	return n + int(f) + len(text) + behind
}

func main() { println(parts(1, 2, "x", 3)) }
`
	files.Write(t, source, text, 0o600)
	cmd := exec.Command("go", "build", "-o", program, source)
	cmd.Env = append(os.Environ(), "GOOS=linux", "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	f, info := mustInfo(t, program)
	var got []string
	for _, p := range mustFunction(t, f, info, "main.parts").Parameters {
		got = append(got, place(p))
	}
	if diff := cmp.Diff([]string{"n: [rdi]", "f: [xmm0]", "text: []", "behind: []"}, got); diff != "" {
		t.Error(diff)
	}
}
