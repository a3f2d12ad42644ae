// SPDX-License-Identifier: Apache-2.0

package objfile_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/attune-hpc/attune/internal/objfile"
)

// mustBuildNames compiles testdata/names.cc in a directory of its own.
func mustBuildNames(t testing.TB, flags ...string) string {
	t.Helper()
	if _, err := exec.LookPath("g++"); err != nil {
		t.Fatal("g++ is needed: apt-get install g++")
	}
	out := filepath.Join(t.TempDir(), "names")
	mustRun(t, "g++", append([]string{"-O1", "-o", out, "testdata/names.cc", "testdata/names_other.cc", "-Wl,--build-id"}, flags...)...)
	return out
}

func displays(found []objfile.Symbol) (names []string) {
	for _, f := range found {
		names = append(names, f.Display())
	}
	return names
}

func TestLookup(t *testing.T) {
	methods := []string{"ns::Matrix::Matrix()", "ns::Matrix::~Matrix()", "ns::Matrix::add(int)", "ns::Matrix::multiply(ns::Matrix const&) const"}
	tests := []struct {
		name, query string
		want        []string // sorted
		err         error
		text        string // in the error
	}{
		{"mangled", "_ZN2ns1fEi", []string{"ns::f(int)"}, nil, ""},
		{"demangled", "ns::f(long)", []string{"ns::f(long)"}, nil, ""},
		{"without parameters", "ns::Matrix::add", []string{"ns::Matrix::add(int)"}, nil, ""},
		{"constructor", "ns::Matrix::Matrix", methods[:1], nil, ""},
		{"template", "ns::largest", []string{"int ns::largest<int>(int, int)"}, nil, ""},
		{"overloads", "ns::f", nil, objfile.ErrAmbiguous, "ns::f(int), ns::f(long)"},
		{"statics", "helper", nil, objfile.ErrAmbiguous, "helper(int)@names.cc, helper(int)@names_other.cc"},
		{"static of a file", "helper@names_other.cc", []string{"helper(int)"}, nil, ""},
		{"all of a class", "ns::Matrix::*", methods, nil, ""},
		{"alias", "alias", []string{"alias"}, nil, ""},
		{"nothing", "ns::Matrix::transpose", nil, objfile.ErrNoSymbol, ""},
		{"typing error", "ns::Matrix::multiplx", nil, objfile.ErrNoSymbol, "close to it: ns::Matrix::multiply"},
		{"too many", "*", nil, objfile.ErrTooManySymbols, "more than 6 match"},
	}
	for _, build := range []struct {
		name  string
		flags []string
	}{{"PIE", nil}, {"fixed addresses", []string{"-no-pie"}}} {
		f := mustOpen(t, mustBuildNames(t, build.flags...))
		for _, test := range tests {
			t.Run(build.name+"/"+test.name, func(t *testing.T) {
				found, err := f.Lookup(test.query, objfile.LookupOptions{Kind: objfile.Function, Limit: 6, Suggest: true})
				if !errors.Is(err, test.err) || err != nil && !strings.Contains(err.Error(), test.text) {
					t.Fatalf("error %v, want %v with %q", err, test.err, test.text)
				}
				if err != nil {
					return
				}
				names := displays(found)
				if diff := cmp.Diff(test.want, names, sorted); diff != "" {
					t.Error(diff)
				}
				for _, one := range found {
					if !one.InFile || !one.Executable {
						t.Errorf("%s: %+v", one.Name, one)
					}
				}
			})
		}
	}
}

var sorted = cmp.Transformer("sorted", func(names []string) map[string]int {
	counts := make(map[string]int)
	for _, name := range names {
		counts[name]++
	}
	return counts
})

func TestLookupOfAliasesAndIndirectFunctions(t *testing.T) {
	f := mustOpen(t, mustBuildNames(t))
	both, err := f.Lookup("alias*", objfile.LookupOptions{Kind: objfile.Function})
	if err != nil || len(both) != 1 {
		t.Errorf("%+v, %v", both, err)
	}
	chosen, err := f.Lookup("chosen", objfile.LookupOptions{Kind: objfile.Function})
	if err != nil || len(chosen) != 1 || !chosen[0].IFunc() {
		t.Errorf("%+v, %v", chosen, err)
	}
}

func TestLookupOfVersions(t *testing.T) {
	f := mustOpen(t, mustBuildLibrary(t, "-s"))
	for query, version := range map[string]string{"versioned": "ATTUNE_2", "versioned@ATTUNE_1": "ATTUNE_1", "versioned@@ATTUNE_2": "ATTUNE_2"} {
		found, err := f.Lookup(query, objfile.LookupOptions{})
		if err != nil || len(found) != 1 || found[0].Version != version {
			t.Errorf("%s: %+v, %v", query, found, err)
		}
	}
}

// TestLookupInDebugFiles strips a program in all the ways that distributions
// do, and finds what it exports to nobody all the same, at the same place.
func TestLookupInDebugFiles(t *testing.T) {
	whole := mustBuildNames(t, "-g")
	id := mustOpen(t, whole).BuildID()
	want, err := mustOpen(t, whole).Lookup("only_here", objfile.LookupOptions{})
	if err != nil {
		t.Fatal(err)
	}
	tests := map[string]func(t *testing.T, stripped string) (root string){
		"build id": func(t *testing.T, stripped string) string {
			root := t.TempDir()
			mustDebugFile(t, whole, filepath.Join(root, ".build-id", id[:2], id[2:]+".debug"))
			return root
		},
		"downloaded": func(t *testing.T, stripped string) string {
			downloads := t.TempDir()
			mustDebugFile(t, whole, filepath.Join(downloads, id, "debuginfo"))
			t.Setenv("DEBUGINFOD_CACHE_PATH", downloads)
			return ""
		},
		"link beside it": func(t *testing.T, stripped string) string {
			debug := filepath.Join(filepath.Dir(stripped), "names.debug")
			mustDebugFile(t, whole, debug)
			mustRun(t, "objcopy", "--add-gnu-debuglink="+debug, "--remove-section=.note.gnu.build-id", stripped)
			return ""
		},
		"link below a root": func(t *testing.T, stripped string) string {
			root := t.TempDir()
			debug := filepath.Join(root, filepath.Dir(stripped), "names.debug")
			mustDebugFile(t, whole, debug)
			mustRun(t, "objcopy", "--add-gnu-debuglink="+debug, stripped)
			return root
		},
		"MiniDebugInfo": func(t *testing.T, stripped string) string {
			mini := filepath.Join(t.TempDir(), "mini")
			mustRun(t, "objcopy", "-S", "--keep-symbol=only_here", "--remove-section=.comment", whole, mini)
			mustRun(t, "objcopy", "--only-keep-debug", mini, mini)
			mustRun(t, "xz", mini)
			mustRun(t, "objcopy", "--add-section=.gnu_debugdata="+mini+".xz", stripped)
			return ""
		},
	}
	for name, prepare := range tests {
		t.Run(name, func(t *testing.T) {
			stripped := filepath.Join(t.TempDir(), "names")
			mustRun(t, "strip", "-o", stripped, whole)
			if _, err := mustOpen(t, stripped).Lookup("only_here", objfile.LookupOptions{}); !errors.Is(err, objfile.ErrNoSymbol) {
				t.Fatalf("found in the stripped file: %v", err)
			}
			root := prepare(t, stripped)
			file := mustOpen(t, stripped)
			if root != "" {
				objfile.LookBelow(file, root)
			}
			got, err := file.Lookup("only_here", objfile.LookupOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// mustDebugFile makes a separate debug file.
func mustDebugFile(t *testing.T, program, debug string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(debug), 0o755); err != nil {
		t.Fatal(err)
	}
	mustRun(t, "objcopy", "--only-keep-debug", program, debug)
}

func TestWrongDebugFileIsRefused(t *testing.T) {
	whole := mustBuildNames(t, "-g")
	stripped := filepath.Join(t.TempDir(), "names")
	debug := filepath.Join(filepath.Dir(stripped), "names.debug")
	mustDebugFile(t, whole, debug)
	mustRun(t, "strip", "-o", stripped, whole)
	mustRun(t, "objcopy", "--add-gnu-debuglink="+debug, "--remove-section=.note.gnu.build-id", stripped)
	file, err := os.OpenFile(debug, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := file.Write([]byte{0}); err != nil {
		t.Fatal(err)
	}
	file.Close()
	if _, err = mustOpen(t, stripped).DebugFile(); !errors.Is(err, objfile.ErrNoDebugFile) || !strings.Contains(err.Error(), "checksum") {
		t.Error(err)
	}
}

// BenchmarkLookup asks the largest library here: a Rust compiler's, else libc.
func BenchmarkLookup(b *testing.B) {
	path := largestLibrary()
	f := mustOpen(b, path)
	b.Logf("%s", path)
	for _, query := range []string{"nothing_of_this_name", "core::panicking::panic_fmt", "rustc_middle::*::is_*"} {
		b.Run(query, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				f.Lookup(query, objfile.LookupOptions{Kind: objfile.Function})
			}
		})
	}
}

func largestLibrary() string {
	for _, pattern := range []string{
		"/usr/bin/node", os.Getenv("HOME") + "/.rustup/toolchains/*/lib/librustc_driver-*.so",
		"/lib/x86_64-linux-gnu/libc.so.6", "/lib/*-linux-gnu/libc.so.6", "/lib64/libc.so.6",
	} {
		if found, err := filepath.Glob(pattern); err == nil && len(found) > 0 {
			return found[0]
		}
	}
	return os.Args[0]
}
