// SPDX-License-Identifier: Apache-2.0

// Package abitest asks the C compiler for the layout that the headers of
// dmlib/include/attune declare, so that tests can compare the Go mirrors with it.
// It has no state.
package abitest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"sync"
	"testing"
)

var (
	defineLine = regexp.MustCompile(`(?m)^#define (ATTUNE_\w+) `)
	structBody = regexp.MustCompile(`(?ms)^struct (attune_\w+) \{\n(.*?)\n\};`)
	fieldLine  = regexp.MustCompile(`(?m)^    (?:struct )?\w+ (\w+)(?:\[\w+\])?;`)
	notNumber  = regexp.MustCompile(`^ATTUNE_(INLINE|EARLY_HEADERS|EARLY_SOCKET|MEMORY_NAME)$`)
	unusedName = regexp.MustCompile(`^(pad\d*|reserved)$`)
)

// headers are those with constants and structures, which stand before others
// that use them.
var headers = []string{"program.h", "dmlib_abi.h", "dmlib_gate.h", "dmlib_attach.h"}

// Header returns the path of a file below dmlib/include/attune.
func Header(t testing.TB, name string) string {
	t.Helper()
	path, err := header(name)
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// header looks above the folder in which the test runs, its package's: programs
// that are built with -trimpath do not know where their sources lie.
func header(name string) (string, error) {
	root, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if _, err := os.Stat(filepath.Join(root, "go.mod")); err == nil {
			return filepath.Join(root, "dmlib/include/attune", name), nil
		}
		if root == filepath.Dir(root) {
			return "", errors.New("no folder above the test's has a go.mod")
		}
		root = filepath.Dir(root)
	}
}

// compiled keeps the answer for the tests of one package: it cannot change,
// and asking takes 0.1 s.
var compiled = sync.OnceValues(compile)

// Layout compiles and runs a program that prints, as the compiler sees them,
// every constant of the headers by its name, the size of every structure by its
// name, and the offset of every field but padding as "structure.field". It
// needs gcc, which is a prerequisite of building Attune. The map belongs to
// the caller.
func Layout(t testing.TB) map[string]uint64 {
	t.Helper()
	layout, err := compiled()
	if err != nil {
		t.Fatal(err)
	}
	return maps.Clone(layout)
}

func compile() (map[string]uint64, error) {
	var path string
	var text []byte
	for _, name := range headers {
		var err error
		if path, err = header(name); err != nil {
			return nil, err
		}
		part, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		text = append(text, part...)
	}
	dir, err := os.MkdirTemp("", "attune-layout")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	source, program := filepath.Join(dir, "layout.c"), filepath.Join(dir, "layout")
	if err := os.WriteFile(source, printer(text), 0o600); err != nil {
		return nil, err
	}
	include := filepath.Dir(filepath.Dir(path))
	build := exec.Command("gcc", "-Wall", "-Wextra", "-Werror", "-I", include, "-o", program, source)
	if out, err := build.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("compile the layout printer (needs gcc: apt-get install gcc libc6-dev): %w\n%s", err, out)
	}
	out, err := exec.Command(program).Output()
	if err != nil {
		return nil, err
	}
	layout := map[string]uint64{}
	if err := json.Unmarshal(out, &layout); err != nil {
		return nil, fmt.Errorf("decode %s: %w", out, err)
	}
	return layout, nil
}

// printer writes the C program for the headers, whose text this is.
func printer(text []byte) []byte {
	var b bytes.Buffer
	for _, name := range headers {
		fmt.Fprintf(&b, "#include <attune/%s>\n", name)
	}
	b.WriteString("#include <stddef.h>\n#include <stdio.h>\n")
	b.WriteString("#define P(name, value) printf(\",\\n\\\"%s\\\": %llu\", name, (unsigned long long)(value))\n")
	b.WriteString("int main(void) {\n    printf(\"{\\\"\\\": 0\");\n")
	for _, d := range defineLine.FindAllSubmatch(text, -1) {
		if notNumber.Match(d[1]) {
			continue
		}
		fmt.Fprintf(&b, "    P(\"%s\", %s);\n", d[1], d[1])
	}
	for _, s := range structBody.FindAllSubmatch(text, -1) {
		fmt.Fprintf(&b, "    P(\"%s\", sizeof(struct %s));\n", s[1], s[1])
		for _, f := range fieldLine.FindAllSubmatch(s[2], -1) {
			if !unusedName.Match(f[1]) {
				fmt.Fprintf(&b, "    P(\"%s.%s\", offsetof(struct %s, %s));\n", s[1], f[1], s[1], f[1])
			}
		}
	}
	b.WriteString("    printf(\"}\\n\");\n    return 0;\n}\n")
	return b.Bytes()
}
