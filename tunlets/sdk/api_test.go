// SPDX-License-Identifier: Apache-2.0

package sdk_test

import (
	"bytes"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/printer"
	"go/token"
	"go/types"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write testdata/api.txt")

// apiOf lists what a package exports, without comments and bodies, sorted.
func apiOf(t *testing.T, dir string) string {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("%s: %v", dir, err)
	}
	var lines []string
	files := token.NewFileSet()
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(files, path, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.FileExports(file)
		for _, d := range file.Decls {
			for _, part := range declarations(d) {
				var out bytes.Buffer
				if err := (&printer.Config{Mode: printer.RawFormat, Tabwidth: 8}).Fprint(&out, files, part); err != nil {
					t.Fatal(err)
				}
				lines = append(lines, out.String())
			}
		}
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// declarations are a declaration's parts, each for itself.
func declarations(d ast.Decl) (parts []any) {
	switch d := d.(type) {
	case *ast.FuncDecl:
		if d.Recv != nil && !ast.IsExported(strings.TrimPrefix(types.ExprString(d.Recv.List[0].Type), "*")) {
			return nil // of a type that nobody else can name
		}
		d.Body = nil
		return []any{d}
	case *ast.GenDecl:
		for _, spec := range d.Specs {
			if d.Tok != token.IMPORT {
				parts = append(parts, &ast.GenDecl{Tok: d.Tok, Specs: []ast.Spec{spec}})
			}
		}
	}
	return parts
}

// What authors build on changes only on purpose, and nothing is taken from them:
// docs/reference/tunlets.md has the promise. After a change for which that is true, and
// the changelog has it: go test ./tunlets/sdk -run API -update.
func TestAPIIsAsPromised(t *testing.T) {
	var got strings.Builder
	for _, dir := range []string{".", "perprocess", "search", "../tunlettest"} {
		fmt.Fprintf(&got, "package %s\n\n%s\n\n", filepath.ToSlash(filepath.Join("tunlets/sdk", dir)), apiOf(t, dir))
	}
	const golden = "testdata/api.txt"
	if *update {
		if err := os.WriteFile(golden, []byte(got.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(got.String(), "\n")); diff != "" {
		t.Errorf("the API of the SDK is not what %s says (-promised +now); see the test:\n%s", golden, diff)
	}
}
