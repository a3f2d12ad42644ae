// SPDX-License-Identifier: Apache-2.0

package objfile_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/attune-hpc/attune/internal/objfile"
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

// TestFunctionsThroughCache finds what only the separate debug file has.
func TestFunctionsThroughCache(t *testing.T) {
	whole := mustBuildNames(t, "-g")
	id := mustOpen(t, whole).BuildID()
	root := t.TempDir()
	mustDebugFile(t, whole, filepath.Join(root, ".build-id", id[:2], id[2:]+".debug"))
	mustRun(t, "strip", whole)
	for _, test := range []struct {
		dirs  objfile.DebugDirs
		count int
	}{{objfile.DebugDirs{}, 0}, {objfile.DebugDirs{Roots: []string{root}}, 1}} {
		cache := objfile.NewCache(objfile.CacheOptions{DebugDirs: &test.dirs})
		f, err := cache.Open(whole)
		if err != nil {
			t.Fatal(err)
		}
		got, err := f.Functions("only_here")
		if err != nil || len(got) != test.count {
			t.Errorf("%v: %+v, %v", test.dirs, got, err)
		}
		if err := errors.Join(f.Close(), cache.Close()); err != nil {
			t.Error(err)
		}
	}
}

func TestSlotsByDemangledName(t *testing.T) {
	path := filepath.Join(t.TempDir(), "libimporter.so")
	source := filepath.Join(t.TempDir(), "importer.cc")
	code := "namespace ns { int f(int); int f(long); }\nint both() { return ns::f(1) + ns::f(2L); }\n"
	if err := os.WriteFile(source, []byte(code), 0o600); err != nil {
		t.Fatal(err)
	}
	mustRun(t, "g++", "-shared", "-fPIC", "-o", path, source)
	f := mustOpen(t, path)
	for query, want := range map[string]int{"ns::f(int)": 1, "ns::*": 2, "ns::f": 0, "_ZN2ns1fEl": 1} {
		if slots, err := f.GOTSlots(query); err != nil || len(slots) != want {
			t.Errorf("%s: %+v, %v", query, slots, err)
		}
	}
}
