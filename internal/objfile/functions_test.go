// SPDX-License-Identifier: Apache-2.0

package objfile_test

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/attune-hpc/attune/internal/objfile"
	"github.com/attune-hpc/attune/internal/testing/files"
)

func TestFunctions(t *testing.T) {
	f := mustOpen(t, mustBuildNames(t))
	tests := map[string]struct {
		query string
		count int
		err   error
		text  string
	}{
		"one":        {"ns::Matrix::add", 1, nil, ""},
		"aliases":    {"alias*", 1, nil, ""},
		"none":       {"nothing_like_it", 0, nil, ""},
		"indirect":   {"chosen", 0, objfile.ErrIndirect, "chosen_now"},
		"left out":   {"chosen*", 1, nil, ""},
		"overloaded": {"ns::f", 0, objfile.ErrAmbiguous, "ns::f(int)"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			for range 2 { // the second answer is a remembered one
				got, err := f.Functions(test.query)
				if len(got) != test.count || !errors.Is(err, test.err) || err != nil && !strings.Contains(err.Error(), test.text) {
					t.Errorf("%+v, %v", got, err)
				}
			}
		})
	}
}

// TestSymbolsOfDebugFiles finds in the program of a process what only the separate debug
// file has, also without a cache.
func TestSymbolsOfDebugFiles(t *testing.T) {
	whole, downloads := mustBuild(t, "-Wl,--build-id"), t.TempDir()
	mustDebugFile(t, whole, filepath.Join(downloads, mustOpen(t, whole).BuildID(), "debuginfo"))
	mustRun(t, "strip", whole)
	t.Setenv("DEBUGINFOD_CACHE_PATH", downloads)
	p := mustStart(t, nil, whole)
	cache := objfile.NewCache()
	defer cache.Close()
	for name, read := range map[string]func(int) ([]objfile.Image, error){"cache": cache.Images, "no cache": objfile.Images} {
		images, err := read(p.pid)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := objfile.LookupIn(images, "", "attune_static", objfile.Function); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestSlotsByDemangledName(t *testing.T) {
	path := filepath.Join(t.TempDir(), "libimporter.so")
	source := filepath.Join(t.TempDir(), "importer.cc")
	code := "namespace ns { int f(int); int f(long); }\nint both() { return ns::f(1) + ns::f(2L); }\n"
	files.Write(t, source, code, 0o600)
	mustRun(t, "g++", "-shared", "-fPIC", "-o", path, source)
	f := mustOpen(t, path)
	for query, want := range map[string]int{"ns::f(int)": 1, "ns::*": 2, "ns::f": 0, "_ZN2ns1fEl": 1} {
		if slots, err := f.GOTSlots(query); err != nil || len(slots) != want {
			t.Errorf("%s: %+v, %v", query, slots, err)
		}
	}
}
