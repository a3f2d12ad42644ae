// SPDX-License-Identifier: Apache-2.0

// Command gen writes what comes from the catalogue of series: constants and types
// in package series and in tunlets/sdk, and the tables of the reference page. It is
// run by go generate, with the path of the repository's root.
package main

import (
	"bytes"
	"embed"
	"fmt"
	"go/format"
	"os"
	"path/filepath"
	"text/template"

	"github.com/attune-hpc/attune/proto/attune/series"
)

//go:embed *.tmpl
var templates embed.FS

func main() { os.Exit(run()) }

func run() int {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: gen ROOT")
		return 2
	}
	if err := generate(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "gen:", err)
		return 1
	}
	return 0
}

// generate writes all files.
func generate(root string) error {
	for to, name := range map[string]string{
		"proto/attune/series/generated.go": "series.tmpl",
		"tunlets/sdk/series_generated.go":  "sdk.tmpl",
	} {
		source, err := goSource(name)
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(root, to), source, 0o644); err != nil {
			return err
		}
	}
	return writePage(filepath.Join(root, "docs/reference/signals.md"))
}

// goSource fills in a template of Go source.
func goSource(name string) ([]byte, error) {
	text, err := filled(name)
	if err != nil {
		return nil, err
	}
	source, err := format.Source(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w\n%s", name, err, text)
	}
	return source, nil
}

// filled fills in a template.
func filled(name string) ([]byte, error) {
	t, err := template.New(name).Funcs(functions()).ParseFS(templates, name)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	data := struct {
		Signals *series.Table
		Details []series.Table
	}{series.Signals(), series.Tables()}
	if err := t.Execute(&out, data); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

// The marks between which a page holds what is generated.
const (
	pageBegin = "<!-- begin %s: generated from proto/attune/series -->\n"
	pageEnd   = "<!-- end %s -->\n"
)

// writePage replaces the generated parts of the reference page.
func writePage(path string) error {
	page, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	for _, part := range []string{"signals", "details"} {
		text, err := filled(part + ".tmpl")
		if err != nil {
			return err
		}
		if page, err = replaced(page, part, text); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
	}
	return os.WriteFile(path, page, 0o644)
}

// replaced is a page with another text between the marks of a part.
func replaced(page []byte, part string, text []byte) ([]byte, error) {
	begin, end := fmt.Appendf(nil, pageBegin, part), fmt.Appendf(nil, pageEnd, part)
	before, rest, found := bytes.Cut(page, begin)
	_, after, ended := bytes.Cut(rest, end)
	if !found || !ended {
		return nil, fmt.Errorf("without the lines %q and %q", begin, end)
	}
	return bytes.Join([][]byte{before, begin, text, end, after}, nil), nil
}
