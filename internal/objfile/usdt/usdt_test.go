// SPDX-License-Identifier: Apache-2.0

package usdt_test

import (
	"debug/elf"
	"errors"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/attune-hpc/attune/internal/objfile"
	"github.com/attune-hpc/attune/internal/objfile/usdt"
	"github.com/attune-hpc/attune/internal/testing/files"
	"github.com/attune-hpc/attune/internal/testing/targets"
)

func mustBuild(t testing.TB, flags ...string) *objfile.File {
	t.Helper()
	return mustOpen(t, targets.Build(t, "testdata/probes.c", append([]string{"-g0", "-O2"}, flags...)...))
}

func mustOpen(t testing.TB, path string) *objfile.File {
	t.Helper()
	f, err := objfile.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

func TestProbes(t *testing.T) {
	if runtime.GOARCH != "amd64" {
		t.Skip("the notes of the test program are written for x86-64")
	}
	for name, flags := range map[string][]string{"PIE": nil, "fixed addresses": {"-no-pie"}, "stripped": {"-s"}} {
		t.Run(name, func(t *testing.T) {
			f := mustBuild(t, flags...)
			probes, err := usdt.Probes(f)
			if err != nil {
				t.Fatal(err)
			}
			seen := make(map[string]bool)
			for _, p := range probes {
				seen[p.Name] = true
				content := files.Read(t, f.Name())
				const nop = 0x90
				if p.Provider != "attune" || content[p.FileOffset] != nop || p.ArgumentError != nil {
					t.Errorf("%+v: code %#x", p, content[p.FileOffset])
				}
				if (p.Name != "done") != (p.SemaphoreOffset != 0) {
					t.Errorf("%s: semaphore at %#x", p.Name, p.SemaphoreOffset)
				}
				if p.Name == "work" && (len(p.Arguments) != 2 || p.Arguments[1] != usdt.Operand{Kind: usdt.Constant, Size: 8, Value: 7}) {
					t.Errorf("arguments %+v", p.Arguments)
				}
			}
			if len(seen) != 3 {
				t.Errorf("probes %v", seen)
			}
		})
	}
}

func TestFind(t *testing.T) {
	f := mustBuild(t)
	tests := map[string]struct {
		provider, name string
		least          int
		err            error
		text           string
	}{
		"one":          {"attune", "done", 1, nil, ""},
		"pattern":      {"att*", "*", 3, nil, ""},
		"typing error": {"attune", "wrk", 0, usdt.ErrNoProbe, "close to it: attune:work"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			probes, err := usdt.Find(f, test.provider, test.name)
			if len(probes) < test.least || !errors.Is(err, test.err) || err != nil && !strings.Contains(err.Error(), test.text) {
				t.Errorf("%d probes, %v", len(probes), err)
			}
		})
	}
}

// TestLibstdcxx reads the probes that distributions build into the C++ library.
func TestLibstdcxx(t *testing.T) {
	found, err := filepath.Glob("/usr/lib/*-linux-gnu/libstdc++.so.6")
	if err != nil || len(found) == 0 {
		t.Skip("not a Debian system")
	}
	probes, err := usdt.Find(mustOpen(t, found[0]), "libstdcxx", "throw")
	if err != nil || len(probes) != 1 || len(probes[0].Arguments) != 2 || probes[0].ArgumentError != nil {
		t.Errorf("%+v, %v", probes, err)
	}
}

func TestParseArguments(t *testing.T) {
	tests := []struct {
		text string
		want usdt.Operand
	}{
		{"-4@$-5", usdt.Operand{Kind: usdt.Constant, Size: 4, Signed: true, Value: -5}},
		{"4@$-1", usdt.Operand{Kind: usdt.Constant, Size: 4, Value: 1<<32 - 1}},
		{"-1@$255", usdt.Operand{Kind: usdt.Constant, Size: 1, Signed: true, Value: -1}},
		{"8@$0xffffffffffffffff", usdt.Operand{Kind: usdt.Constant, Size: 8, Value: -1}},
		{"-4@%edi", usdt.Operand{Kind: usdt.Register, Size: 4, Signed: true, Base: "rdi"}},
		{"1@%sil", usdt.Operand{Kind: usdt.Register, Size: 1, Base: "rsi"}},
		{"2@%r10w", usdt.Operand{Kind: usdt.Register, Size: 2, Base: "r10"}},
		{"8f@%xmm3", usdt.Operand{Kind: usdt.Register, Size: 8, Float: true, Base: "xmm3"}},
		{"8@-16(%rbp)", usdt.Operand{Kind: usdt.Memory, Size: 8, Base: "rbp", Value: -16}},
		{"4@(%rax)", usdt.Operand{Kind: usdt.Memory, Size: 4, Base: "rax"}},
		{"4@8(%rax,%rbx,4)", usdt.Operand{Kind: usdt.Memory, Size: 4, Base: "rax", Index: "rbx", Scale: 4, Value: 8}},
		{"4@8(,%rbx,8)", usdt.Operand{Kind: usdt.Memory, Size: 4, Index: "rbx", Scale: 8, Value: 8}},
		{"%rax", usdt.Operand{Kind: usdt.Register, Size: 8, Base: "rax"}},
	}
	for _, test := range tests {
		t.Run(test.text, func(t *testing.T) {
			got, err := usdt.ParseArguments(elf.EM_X86_64, test.text+" "+test.text)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff([]usdt.Operand{test.want, test.want}, got); diff != "" {
				t.Error(diff)
			}
		})
	}
	for _, bad := range []string{
		"3@%rax", "4@", "4@%ah", "4@%nothing", "8@symbol(%rip)", "8@%fs:40", "4@()", "4@(%rax,%rbx,3)", "4@%r7", "4@%r16", "x@%rax",
		strings.Repeat("4@%eax ", 13),
	} {
		if got, err := usdt.ParseArguments(elf.EM_X86_64, bad); !errors.Is(err, usdt.ErrArgument) {
			t.Errorf("%q: %+v, %v", bad, got, err)
		}
	}
	if got, err := usdt.ParseArguments(elf.EM_AARCH64, "-4@w0"); !errors.Is(err, usdt.ErrArgument) {
		t.Errorf("another machine: %+v, %v", got, err)
	}
}

func FuzzParseArguments(f *testing.F) {
	for _, text := range []string{"-4@$5 8@%rdi", "8@8(%rax,%rbx,4)", "-4@[sp, 16] 8@[x0, x1, lsl 3]", "]) (["} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		operands, err := usdt.ParseArguments(elf.EM_X86_64, text)
		for _, o := range operands {
			register := o.Kind == usdt.Register && o.Base != ""
			memory := o.Kind == usdt.Memory && (o.Base != "" || o.Index != "") && (o.Index == "") == (o.Scale == 0)
			if err != nil || o.Size < 1 || o.Size > 8 || !register && !memory && o.Kind != usdt.Constant {
				t.Errorf("%q: %+v, %v", text, o, err)
			}
		}
	})
}

// FuzzNotes breaks the notes of a real file.
func FuzzNotes(f *testing.F) {
	built := mustBuild(f)
	whole := files.Read(f, built.Name())
	notes, err := built.Section(".note.stapsdt", 1<<20)
	if err != nil {
		f.Fatal(err)
	}
	at := strings.Index(string(whole), string(notes))
	f.Add(notes)
	f.Add([]byte{0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 3, 0, 0, 0})
	path := filepath.Join(f.TempDir(), "broken")
	f.Fuzz(func(t *testing.T, notes []byte) {
		broken := append([]byte(nil), whole...)
		copy(broken[at:min(at+4096, len(broken))], notes)
		files.Write(t, path, broken, 0o600)
		file, err := objfile.Open(path)
		if err != nil {
			return
		}
		defer file.Close()
		probes, err := usdt.Probes(file)
		for _, p := range probes {
			if err != nil || p.FileOffset >= uint64(len(broken)) || p.SemaphoreOffset >= uint64(len(broken)) {
				t.Errorf("%+v, %v", p, err)
			}
		}
	})
}
