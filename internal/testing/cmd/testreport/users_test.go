// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

const repository = "../../../.."

// TestUsersSkipsAreListed: a test that anybody can start, and that does nothing without root,
// says so and is listed: for a user `make test` would fail, or count it as passed.
func TestUsersSkipsAreListed(t *testing.T) {
	allowed, found := mustReadAllowed(t), withoutRoot(t)
	for of, does := range found {
		_, listed := allowed[of]
		switch {
		case does == "return":
			t.Errorf("%s ends as if it had passed where there is no root: t.Skip, or a file with the tag privileged", of)
		case strings.HasPrefix(does, "t.Skip(") && !listed:
			t.Errorf("%s is skipped without root, and not listed in scripts/allowed-skips", of)
		}
	}
	if len(found) == 0 {
		t.Error("no such test was found")
	}
}

// TestListedTestsExist: what is listed is a test of its package.
func TestListedTestsExist(t *testing.T) {
	for of := range mustReadAllowed(t) {
		files, err := filepath.Glob(filepath.Join(repository, of.pkg, "*_test.go"))
		if err != nil {
			t.Fatal(err)
		}
		name, _, _ := strings.Cut(of.name, "/")
		there := false
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			there = there || bytes.Contains(text, []byte("\nfunc "+name+"("))
		}
		if !there {
			t.Errorf("%s is listed in scripts/allowed-skips, and there is no such test", of)
		}
	}
}

func mustReadAllowed(t *testing.T) map[test]string {
	t.Helper()
	file, err := os.Open(filepath.Join(repository, "scripts/allowed-skips"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	allowed, err := readAllowed(file)
	if err != nil {
		t.Fatal(err)
	}
	return allowed
}

// tagged is a file that another step has, which is named as not run.
var tagged = regexp.MustCompile(`(?m)^//go:build .*\b(privileged|site|e2e|vm|full)\b`)

// withoutRoot returns what tests do first that ask for root and have none, of files without
// a tag.
func withoutRoot(t *testing.T) map[test]string {
	t.Helper()
	found := map[test]string{}
	err := filepath.WalkDir(repository, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && (entry.Name() == ".cache" || entry.Name() == ".git"):
			return fs.SkipDir
		case !strings.HasSuffix(path, "_test.go"):
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil || tagged.Match(text) {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, text, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		pkg, err := filepath.Rel(repository, filepath.Dir(path))
		for _, d := range file.Decls {
			if function, ok := d.(*ast.FuncDecl); ok && strings.HasPrefix(function.Name.Name, "Test") {
				if does := unlessRoot(function.Body); does != "" {
					found[test{pkg: pkg, name: function.Name.Name}] = does
				}
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// unlessRoot returns what is done first where a statement of a test asks for root, and there
// is none.
func unlessRoot(body *ast.BlockStmt) string {
	for _, statement := range body.List {
		asks, ok := statement.(*ast.IfStmt)
		if !ok || types.ExprString(asks.Cond) != "os.Geteuid() != 0" || len(asks.Body.List) == 0 {
			continue
		}
		switch first := asks.Body.List[0].(type) {
		case *ast.ReturnStmt:
			return "return"
		case *ast.ExprStmt:
			return types.ExprString(first.X)
		}
	}
	return ""
}
