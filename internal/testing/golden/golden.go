// SPDX-License-Identifier: Apache-2.0

// Package golden compares what the code says with files that are made from it, such as pages of
// the reference, and writes them anew where the test is run with -update.
package golden

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/jsonschema-go/jsonschema"
)

var update = flag.Bool("update", false, "write the files anew that are made from the code")

// File fails the test unless a file is as it is to be.
func File(t *testing.T, path string, want []byte) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, want, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s is not up to date, run the test with -update (-want +got):\n%s", path, diff)
	}
}

// Part fails the test unless a part of a page is as it is to be. It stands between two marks,
// which have its name and the package that it is made from.
func Part(t *testing.T, path, name, from string, want []byte) {
	t.Helper()
	page, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	begin, end := []byte("<!-- begin "+name+": generated from "+from+" -->\n"), []byte("<!-- end "+name+" -->\n")
	before, rest, begun := bytes.Cut(page, begin)
	_, after, ended := bytes.Cut(rest, end)
	if !begun || !ended {
		t.Fatalf("%s is without the lines %q and %q", path, begin, end)
	}
	File(t, path, slices.Concat(before, begin, want, end, after))
}

// Schema fails the test unless a file is the JSON schema of a document of Attune, under its
// name, which has the layout's version in it, with its title and a sentence.
func Schema(t *testing.T, path string, s *jsonschema.Schema, name, title, description string) {
	t.Helper()
	s.Schema = "https://json-schema.org/draft/2020-12/schema"
	s.ID = "https://attune-hpc.github.io/schema/" + name + ".json"
	s.Title, s.Description = title, description
	text, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	File(t, path, append(text, '\n'))
}
