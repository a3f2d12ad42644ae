// SPDX-License-Identifier: Apache-2.0

package targets

import (
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/attune-hpc/attune/internal/outfile"
)

// warnings are errors in every target.
var warnings = []string{"-O1", "-g", "-Wall", "-Wextra", "-Werror", "-pthread"}

// Build compiles a C file with gcc and returns the program, a file of the
// test's own: probes belong to files. flags come last. The same source with the
// same flags is compiled once for all tests of a package.
//
// Where compiling is slow, ATTUNE_TARGETS names a folder in which programs are
// kept for all packages of a test run, and ATTUNE_COMPILER one in which somebody
// compiles who is faster (scripts/test-vm). What a source includes is not looked at.
func Build(tb testing.TB, source string, flags ...string) string {
	tb.Helper()
	name := strings.TrimSuffix(filepath.Base(source), ".c")
	return BuildWith(tb, "gcc", name, append([]string{source}, flags...)...)
}

// BuildLibrary is Build for a shared library, libNAME.so.
func BuildLibrary(tb testing.TB, source string, flags ...string) string {
	tb.Helper()
	name := "lib" + strings.TrimSuffix(filepath.Base(source), ".c") + ".so"
	return BuildWith(tb, "gcc", name, append([]string{source, "-shared", "-fPIC"}, flags...)...)
}

// BuildText is Build for a program that stands in the test, in C.
func BuildText(tb testing.TB, name, text string, flags ...string) string {
	tb.Helper()
	source := filepath.Join(tb.TempDir(), name+".c")
	if err := os.WriteFile(source, []byte(text), 0o600); err != nil {
		tb.Fatal(err)
	}
	return Build(tb, source, flags...)
}

// BuildWith compiles with a compiler that has gcc's options, into a file of the
// given name.
func BuildWith(tb testing.TB, compiler, name string, arguments ...string) string {
	tb.Helper()
	program := compiled(tb, compiler, append(warnings[:len(warnings):len(warnings)], arguments...))
	path := filepath.Join(tb.TempDir(), name)
	if err := WriteProgram(path, program); err != nil {
		tb.Fatal(err)
	}
	return path
}

// WriteProgram writes a file that can be executed at once. A test beside this
// one does not fork meanwhile: its child would have the file open for writing
// until it executes another one (ETXTBSY, golang.org/issue/22315).
func WriteProgram(path string, program []byte) error {
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	return os.WriteFile(path, program, 0o755)
}

// Programs that have been compiled, by what they were made of.
var (
	mu    sync.Mutex // held while one is compiled
	built = make(map[string][]byte)
)

func compiled(tb testing.TB, compiler string, arguments []string) []byte {
	tb.Helper()
	key := keyOf(compiler, arguments)
	mu.Lock()
	defer mu.Unlock()
	if program, ok := built[key]; ok {
		return program
	}
	folder := os.Getenv("ATTUNE_TARGETS")
	program, err := os.ReadFile(filepath.Join(folder, key))
	if folder == "" || err != nil {
		program = compile(tb, compiler, arguments)
	}
	if folder != "" && err != nil {
		// Tests of other packages read it meanwhile: they find all of it or nothing.
		if err := outfile.Put(filepath.Join(folder, key), program, 0o600); err != nil {
			tb.Fatal(err)
		}
	}
	built[key] = program
	return program
}

// keyOf tells programs apart. Files among the arguments count with their
// content; a source does not count with the folder that a test has put it into,
// a library does: the program looks for it there.
func keyOf(compiler string, arguments []string) string {
	sum := sha256.New()
	fmt.Fprintln(sum, compiler)
	for _, argument := range arguments {
		text, err := os.ReadFile(argument)
		if err != nil { // an option, or its value
			fmt.Fprintf(sum, "%q\n", argument)
			continue
		}
		if strings.HasSuffix(argument, ".c") {
			argument = filepath.Base(argument)
		}
		fmt.Fprintf(sum, "%q %x\n", argument, sha256.Sum256(text))
	}
	return fmt.Sprintf("%x", sum.Sum(nil))
}

func compile(tb testing.TB, compiler string, arguments []string) []byte {
	tb.Helper()
	if folder := os.Getenv("ATTUNE_COMPILER"); folder != "" {
		if program, err := compileElsewhere(folder, compiler, arguments); err == nil {
			return program
		} // whatever it is, it shows here
	}
	path := filepath.Join(tb.TempDir(), "compiled")
	arguments = append([]string{"-o", path}, arguments...)
	if text, err := exec.Command(compiler, arguments...).CombinedOutput(); err != nil {
		tb.Fatalf("%s %s (needs: apt-get install gcc libc6-dev): %v\n%s", compiler, strings.Join(arguments, " "), err, text)
	}
	program, err := os.ReadFile(path)
	if err != nil {
		tb.Fatal(err)
	}
	return program
}
