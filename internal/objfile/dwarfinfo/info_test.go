// SPDX-License-Identifier: Apache-2.0

package dwarfinfo_test

import (
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/attune-hpc/attune/internal/objfile"
	"github.com/attune-hpc/attune/internal/objfile/dwarfinfo"
	"github.com/attune-hpc/attune/internal/testing/files"
	"github.com/attune-hpc/attune/internal/testing/targets"
)

func mustRun(t testing.TB, name string, args ...string) string {
	t.Helper()
	out, err := exec.Command(name, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s %v: %v\n%s", name, args, err, out)
	}
	return string(out)
}

func mustBuild(t testing.TB, flags ...string) string {
	t.Helper()
	return targets.BuildWith(t, "gcc", "types", append([]string{"-g0", "-no-pie", "testdata/types.c", "-Wl,--build-id"}, flags...)...)
}

func mustInfo(t testing.TB, path string) (*objfile.File, *dwarfinfo.Info) {
	t.Helper()
	f, err := objfile.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	info, err := dwarfinfo.Open(f)
	if err != nil {
		t.Fatal(err)
	}
	return f, info
}

func mustFunction(t testing.TB, f *objfile.File, info *dwarfinfo.Info, name string) dwarfinfo.Function {
	t.Helper()
	found, err := f.Lookup(name, objfile.LookupOptions{Kind: objfile.Function})
	if err != nil {
		t.Fatal(err)
	}
	function, err := info.Function(found[0])
	if err != nil {
		t.Fatal(err)
	}
	return function
}

// place is where a parameter is, in a word.
func place(p dwarfinfo.Parameter) string {
	if p.Class == dwarfinfo.InMemory {
		return p.Name + ": stack"
	}
	return fmt.Sprintf("%s: %v", p.Name, registers(p))
}

// registers are the names of those that hold a parameter.
func registers(p dwarfinfo.Parameter) (names []string) {
	for _, n := range p.General {
		names = append(names, []string{"rdi", "rsi", "rdx", "rcx", "r8", "r9"}[n])
	}
	for _, n := range p.Vector {
		names = append(names, fmt.Sprintf("xmm%d", n))
	}
	return names
}

// TestInfo reads the same from both versions of DWARF, compressed, and from a
// separate file.
func TestInfo(t *testing.T) {
	if runtime.GOARCH != "amd64" {
		t.Skip("registers are those of x86-64")
	}
	tests := map[string]func(t *testing.T) string{
		"DWARF 4":    func(t *testing.T) string { return mustBuild(t, "-gdwarf-4") },
		"DWARF 5":    func(t *testing.T) string { return mustBuild(t, "-gdwarf-5") },
		"compressed": func(t *testing.T) string { return mustBuild(t, "-g", "-gz") },
		"separate": func(t *testing.T) string {
			path := mustBuild(t, "-g")
			mustRun(t, "objcopy", "--only-keep-debug", path, path+".debug")
			mustRun(t, "strip", path)
			mustRun(t, "objcopy", "--add-gnu-debuglink="+path+".debug", path)
			return path
		},
	}
	for name, build := range tests {
		t.Run(name, func(t *testing.T) {
			path := build(t)
			f, info := mustInfo(t, path)
			checkParameters(t, mustFunction(t, f, info, "all"))
			checkRows(t, mustFunction(t, f, info, "rows"))
			result := mustFunction(t, f, info, "result")
			if got := place(result.Parameters[0]); got != "first: [rsi]" {
				t.Errorf("beside a large result: %s", got)
			}
			checkVariables(t, path, info)
		})
	}
}

// TestPassedOnStack: what is on the stack takes no register from those behind it. Where that
// is not known, nothing is said of them.
func TestPassedOnStack(t *testing.T) {
	if runtime.GOARCH != "amd64" {
		t.Skip("registers are those of x86-64")
	}
	f, info := mustInfo(t, targets.Build(t, "testdata/passed.c", "-g", "-mavx", "-Wno-psabi"))
	behind := []string{"s: stack", "n: [rdi]", "x: [xmm0]"}
	unknown := []string{"s: []", "n: []", "x: []"}
	for function, want := range map[string][]string{
		"large": behind, "extended": {"s: stack", "n: []", "x: []"}, "aligned": behind, "array": behind,
		"no_room": {
			"a: [rdi]", "b: [rsi]", "c: [rdx]", "d: [rcx]", "e: [r8]", "s: stack", "i: stack", "n: [r9]",
		},
		"unaligned": unknown, "vector": unknown, "integers": unknown, "quadruple": unknown,
	} {
		var got []string
		for _, p := range mustFunction(t, f, info, function).Parameters {
			got = append(got, place(p))
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", function, diff)
		}
	}
}

func checkParameters(t *testing.T, all dwarfinfo.Function) {
	t.Helper()
	var got []string
	for _, p := range all.Parameters {
		got = append(got, place(p))
	}
	want := []string{
		"a: [rdi]", "b: [xmm0]", "list: [rsi]", "c: [rdx]", "d: [xmm1]", "p: [xmm2 xmm3]", "m: [rcx xmm4]",
		"text: [r8]", "last: [r9]", "big: stack", "stacked: stack",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	tests := map[string]struct {
		offsets []int64
		size    int64
		signed  bool
		err     error
	}{
		"a":                 {nil, 4, true, nil},
		"c":                 {nil, 8, false, nil},
		"list->flags":       {[]int64{0}, 2, true, nil},
		"list.tag":          {[]int64{4}, 4, true, nil},
		"list.where.y":      {[]int64{16}, 8, false, nil},
		"list->next->next":  {[]int64{24, 24}, 8, false, nil},
		"list.next.flags":   {[]int64{24, 0}, 2, true, nil},
		"list.table[2][1]":  {[]int64{32 + 4*11}, 4, true, nil},
		"text[3]":           {[]int64{3}, 1, true, nil},
		"list.table[3][0]":  {err: dwarfinfo.ErrNotFound},
		"list.nothing":      {err: dwarfinfo.ErrNotFound},
		"nothing":           {err: dwarfinfo.ErrNotFound},
		"list.low":          {err: dwarfinfo.ErrUnsupported},
		"p.x":               {err: dwarfinfo.ErrUnsupported},
		"list..flags":       {err: dwarfinfo.ErrPath},
		"list[99999999999]": {err: dwarfinfo.ErrPath},
		"a.b":               {err: dwarfinfo.ErrUnsupported},
	}
	for path, test := range tests {
		got, err := all.Path(path)
		if !errors.Is(err, test.err) {
			t.Errorf("%s: %v, want %v", path, err, test.err)
		}
		if err == nil && (!cmp.Equal(got.Offsets, test.offsets) || got.Type.Size != test.size || got.Type.Signed != test.signed) {
			t.Errorf("%s: offsets %v, %+v", path, got.Offsets, got.Type)
		}
	}
}

// checkRows looks into arrays of arrays that are behind a pointer.
func checkRows(t *testing.T, rows dwarfinfo.Function) {
	t.Helper()
	for path, want := range map[string]int64{"m[1][2]": 4 * 7, "m[0][4]": 4 * 4, "row[2][0]": 4 * 10} {
		got, err := rows.Path(path)
		if err != nil || !cmp.Equal(got.Offsets, []int64{want}) || got.Type.Size != 4 {
			t.Errorf("%s: %+v, %v; want %d", path, got, err, want)
		}
	}
	if got, err := rows.Path("m[1][5]"); !errors.Is(err, dwarfinfo.ErrNotFound) {
		t.Errorf("beyond a row: %+v, %v", got, err)
	}
}

// checkVariables compares with the addresses that the program prints.
func checkVariables(t *testing.T, path string, info *dwarfinfo.Info) {
	t.Helper()
	var sum int64
	var ntuples, element, hidden, main uint64
	if _, err := fmt.Sscanf(mustRun(t, path), "%d 0x%x 0x%x 0x%x 0x%x", &sum, &ntuples, &element, &hidden, &main); err != nil {
		t.Fatal(err)
	}
	for variable, address := range map[string]uint64{
		"global_sendwork.ntuples": ntuples, "global_sendwork.inner.table[1][2]": element, "hidden_byte": hidden,
	} {
		got, err := info.Variable(variable)
		if err != nil || got.Symbol.Value+uint64(got.Offsets[0]) != address || got.Type.Kind != dwarfinfo.Integer {
			t.Errorf("%s: %+v, %v; want %#x", variable, got, err, address)
		}
	}
	chain, err := info.Variable("global_sendwork.head->next->flags")
	if diff := cmp.Diff([]int64{16, 24, 0}, chain.Offsets); err != nil || diff != "" {
		t.Errorf("%v %s", err, diff)
	}
	for _, path := range []string{"hidden_byte[5]", "global_sendwork.ntuples[1]", "global_sendwork.inner[1]"} {
		if got, err := info.Variable(path); !errors.Is(err, dwarfinfo.ErrNotFound) {
			t.Errorf("%s, which is no array: %+v, %v", path, got, err)
		}
	}
	local, err := info.Variable("per_thread")
	if err != nil || !local.ThreadLocal || local.Type.Size != 8 {
		t.Errorf("%+v, %v", local, err)
	}
	if _, err := info.Variable("main"); !errors.Is(err, dwarfinfo.ErrNotFound) {
		t.Errorf("a function as a variable: %v", err)
	}
}

func TestWithout(t *testing.T) {
	f, err := objfile.Open(mustBuild(t))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := dwarfinfo.Open(f); !errors.Is(err, dwarfinfo.ErrNoDebugInfo) {
		t.Error(err)
	}
}

func TestSplit(t *testing.T) {
	f, info := mustInfo(t, mustBuild(t, "-g", "-gsplit-dwarf", "-dumpdir", t.TempDir()+"/"))
	found, err := f.Lookup("all", objfile.LookupOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := info.Function(found[0]); !errors.Is(err, dwarfinfo.ErrUnsupported) {
		t.Error(err)
	}
	if _, err := info.Variable("global_sendwork.ntuples"); !errors.Is(err, dwarfinfo.ErrUnsupported) {
		t.Error(err)
	}
}

// FuzzInfo breaks the debug sections of a real file.
func FuzzInfo(f *testing.F) {
	path := mustBuild(f, "-gdwarf-5")
	whole := files.Read(f, path)
	built, _ := mustInfo(f, path)
	found, err := built.Lookup("all", objfile.LookupOptions{})
	if err != nil {
		f.Fatal(err)
	}
	size := len(whole)
	f.Add(uint32(size*2/3), []byte{0xff, 0xff, 0xff, 0xff, 5})
	f.Add(uint32(size/2), []byte{0, 1, 2, 3})
	broken := filepath.Join(f.TempDir(), "broken")
	f.Fuzz(func(t *testing.T, at uint32, data []byte) {
		content := append([]byte(nil), whole...)
		copy(content[int(at)%size:], data)
		files.Write(t, broken, content, 0o600)
		file, err := objfile.Open(broken)
		if err != nil {
			return
		}
		defer file.Close()
		info, err := dwarfinfo.Open(file)
		if err != nil {
			return
		}
		if function, err := info.Function(found[0]); err == nil {
			function.Path("list->next->table[1][2]")
		}
		info.Variable("global_sendwork.head->next->flags")
		info.Variable("per_thread")
	})
}
