// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/attune-hpc/attune/bench/internal/present"
	"github.com/attune-hpc/attune/internal/testing/files"
)

func TestParse(t *testing.T) {
	const head = heading + "\n| Promise | Command |\n|---|---|\n"
	tests := []struct {
		name, readme string
		want         []promise
		wrong        string
	}{
		{"rows", "# A\n" + head + "| fast | `bench/a` |\n| small | `bench/b` |\n\n## Else\n| c | `d` |\n", []promise{{"fast", "bench/a"}, {"small", "bench/b"}}, ""},
		{"no table", "# A\n", nil, "no heading"},
		{"empty", head, nil, "is empty"},
		{"no command", head + "| fast | trust us |\n", nil, "not a promise"},
		{"twice", head + "| fast | `bench/a` |\n| small | `bench/a` |\n", nil, "two promises"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := parse(tt.readme)
			if (err != nil) != (tt.wrong != "") || err != nil && !strings.Contains(err.Error(), tt.wrong) {
				t.Fatalf("error: got %v, want one with %q", err, tt.wrong)
			}
			if diff := cmp.Diff(tt.want, got, cmp.AllowUnexported(promise{})); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// Every promise of this repository has a command that can be run.
func TestPromisesOfTheReadme(t *testing.T) {
	const root = "../../.."
	text := files.Read(t, filepath.Join(root, "README.md"))
	promises, err := parse(string(text))
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range promises {
		if _, err := exec.LookPath(filepath.Join(root, p.command)); err != nil {
			t.Errorf("%s: %v", p.text, err)
		}
	}
}

func TestVerify(t *testing.T) {
	// The last argument is the file of -json.
	const write = "#!/bin/sh\nprintf '%s' '{\"goals\":[{\"name\":\"speed\",\"value\":1,\"limit\":2}]}' >$4\n"
	goals := []present.Goal{{Name: "speed", Value: 1, Limit: 2}}
	tests := []struct {
		name, script string
		kept         bool
		goals        []present.Goal
	}{
		{"kept", write, true, goals},
		{"missed", write + "exit 1\n", false, goals},
		{"failed", "#!/bin/sh\nexit 1\n", false, nil},
		{"says nothing", "#!/bin/sh\n", false, nil},
		{"damaged", "#!/bin/sh\necho '{' >$4\n", false, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			command := filepath.Join(dir, "command")
			files.Write(t, command, tt.script, 0o755)
			got := promise{command: command}.verify(t.Context(), dir)
			if (got.err == nil) != tt.kept {
				t.Errorf("got %v, want it kept: %v", got.err, tt.kept)
			}
			if diff := cmp.Diff(tt.goals, got.goals); diff != "" {
				t.Error(diff)
			}
		})
	}
}
