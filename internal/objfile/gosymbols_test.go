// SPDX-License-Identifier: Apache-2.0

package objfile_test

import (
	"path/filepath"
	"slices"
	"testing"

	"github.com/attune-hpc/attune/internal/objfile"
	"github.com/attune-hpc/attune/internal/testing/files"
)

// TestFunctionsOfStrippedGo: stripped programs have their functions where they had
// them before.
func TestFunctionsOfStrippedGo(t *testing.T) {
	t.Setenv("CGO_ENABLED", "1") // without, nothing is linked by another linker
	source := filepath.Join(t.TempDir(), "main.go")
	files.Write(t, source, "package main\n\nfunc main() { println(1) }\n", 0o600)
	for name, flags := range map[string][]string{
		"plain":                    nil,
		"position-independent":     {"-buildmode=pie"},
		"another entry point":      {"-ldflags=-E _rt0_amd64"},
		"both":                     {"-buildmode=pie", "-ldflags=-E _rt0_amd64"},
		"linked by the C compiler": {"-ldflags=-linkmode=external"},
	} {
		t.Run(name, func(t *testing.T) {
			whole := filepath.Join(t.TempDir(), "whole")
			mustRun(t, "go", append(append([]string{"build", "-o", whole}, flags...), source)...)
			mustRun(t, "strip", "-o", whole+".stripped", whole)
			for _, query := range []string{"main.main", "runtime.mallocgc"} {
				want, err := mustOpen(t, whole).Functions(query)
				if err != nil || len(want) != 1 {
					t.Fatalf("%+v, %v", want, err)
				}
				got, err := mustOpen(t, whole+".stripped").Functions(query)
				if err != nil || !slices.EqualFunc(got, want, sameAddress) {
					t.Errorf("%s: %+v, %v, want %+v", query, got, err, want)
				}
			}
		})
	}
}

func sameAddress(a, b objfile.Symbol) bool { return a.Value == b.Value }
