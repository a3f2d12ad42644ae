// SPDX-License-Identifier: Apache-2.0

package objfile_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/internal/objfile"
	"github.com/attune-hpc/attune/internal/procid"
	"github.com/attune-hpc/attune/internal/testing/files"
	"github.com/attune-hpc/attune/internal/testing/targets"
)

func TestParseMaps(t *testing.T) {
	data := files.Read(t, "testdata/maps")
	got, err := objfile.ParseMaps(data)
	if err != nil {
		t.Fatal(err)
	}
	device := unix.Mkdev(0xfe, 1)
	program := objfile.Mapping{Device: device, Inode: 655, Path: "/usr/bin/cat", Read: true, Private: true}
	text, code := program, program
	text.Start, text.End = 0x55d5c0a00000, 0x55d5c0a02000
	code.Start, code.End, code.Offset, code.Exec = 0x55d5c0a02000, 0x55d5c0a07000, 0x2000, true
	shared := objfile.Mapping{
		Start: 0x7f0000000000, End: 0x7f0000001000, Offset: 0x1000, Device: device, Inode: 77, Path: "/tmp/with blank\nand line",
		Read: true, Write: true, Exec: true,
	}
	want := []objfile.Mapping{
		text, code,
		{Start: 0x55d5c1000000, End: 0x55d5c1021000, Path: "[heap]", Read: true, Write: true, Private: true},
		shared,
		{Start: 0x7f0000001000, End: 0x7f0000002000, Read: true, Write: true, Private: true},
		{Start: 0x7ffd00000000, End: 0x7ffd00021000, Path: "[stack]", Read: true, Write: true, Private: true},
		{Start: 0xffffffffff600000, End: 0xffffffffff601000, Path: "[vsyscall]", Exec: true, Private: true},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("mappings (-want +got):\n%s", diff)
	}
	got = objfile.Files(got)
	if diff := cmp.Diff([]objfile.Mapping{text, code, shared}, got); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"/usr/bin/cat", "/tmp/with blank\nand line"}, objfile.Objects(got)); diff != "" {
		t.Errorf("objects (-want +got):\n%s", diff)
	}
}

// A process that has ended but was not waited for has no memory any more.
func TestMappingsOfTheDead(t *testing.T) {
	cmd := exec.Command("true")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer cmd.Wait()
	if err := unix.Waitid(unix.P_PID, cmd.Process.Pid, nil, unix.WEXITED|unix.WNOWAIT, nil); err != nil {
		t.Fatal(err)
	}
	if got, err := objfile.Mappings(cmd.Process.Pid); !errors.Is(err, procid.ErrGone) {
		t.Errorf("mappings %v, %v; want %v", got, err, procid.ErrGone)
	}
}

// A process that executes one program after the other always has memory.
func TestMappingsOfWhoExecutes(t *testing.T) {
	cmd := exec.Command("/bin/sh", "-c", `exec /bin/sh -c "$0" "$0"`)
	cmd.Args = append(cmd.Args, cmd.Args[2])
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }()
	for until := time.Now().Add(time.Second); time.Now().Before(until); {
		if _, err := objfile.AllMappings(cmd.Process.Pid); err != nil {
			t.Fatal(err)
		}
	}
}

func TestParseMapsRefuses(t *testing.T) {
	for _, line := range []string{
		"nonsense", "1-2", "2-1 r-xp 0 0:0 0", "1-2 r-xp 0 00 0", "12 r-xp 0 0:0 0", "1-2 rx 0 0:0 0", "1-2 r-xp x 0:0 0", "1-2 r-xp 0 0:0 x",
	} {
		t.Run(line, func(t *testing.T) {
			if _, err := objfile.ParseMaps([]byte(line + "\n")); !errors.Is(err, objfile.ErrMalformedMaps) {
				t.Errorf("error %v", err)
			}
		})
	}
}

func FuzzParseMaps(f *testing.F) {
	data := files.Read(f, "testdata/maps")
	f.Add(data)
	f.Fuzz(func(t *testing.T, data []byte) {
		mappings, err := objfile.ParseMaps(data)
		if err != nil {
			return
		}
		for _, m := range mappings {
			if m.Start > m.End {
				t.Errorf("accepted %+v", m)
			}
		}
	})
}

func TestResolve(t *testing.T) {
	tests := []struct {
		name   string
		flags  []string
		remove bool
	}{
		{"PIE", nil, false},
		{"fixed addresses", []string{"-no-pie"}, false},
		{"static", []string{"-static"}, false},
		{"static PIE", []string{"-static-pie"}, false},
		{"one segment for code and data", []string{"-Wl,-z,noseparate-code"}, false},
		{"large pages", []string{"-Wl,-z,max-page-size=0x200000"}, false},
		{"lld-like order", []string{"-Wl,-z,separate-code,-z,relro,-z,now"}, false},
		{"deleted", nil, true},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			path := mustBuild(t, test.flags...)
			p := mustStart(t, nil, path)
			if test.remove {
				if err := os.Remove(path); err != nil {
					t.Fatal(err)
				}
			}
			if len(p.addresses) < 5 {
				t.Fatalf("the program tells %v", p.addresses)
			}
			for name, want := range p.addresses {
				got, err := objfile.Resolve(p.pid, "program", name, objfile.Any)
				if err != nil || got.Address != want {
					t.Errorf("%s: %x, %v, the program tells %x", name, got.Address, err, want)
				}
			}
			checkContent(t, p)
		})
	}
}

// checkContent reads the variable in the process.
func checkContent(t *testing.T, p program) {
	t.Helper()
	number, err := objfile.Resolve(p.pid, "", "attune_number", objfile.Variable)
	if err != nil {
		t.Fatal(err)
	}
	memory, err := os.Open(fmt.Sprintf("/proc/%d/mem", p.pid))
	if err != nil {
		t.Fatal(err)
	}
	defer memory.Close()
	data := make([]byte, number.Symbol.Size)
	if _, err := memory.ReadAt(data, int64(number.Address)); err != nil {
		t.Fatal(err)
	}
	if value := binary.LittleEndian.Uint32(data); value != 4711 {
		t.Errorf("attune_number is %d in the process", value)
	}
	if number.Address < number.Image.Start || number.Address >= number.Image.End {
		t.Errorf("%x is outside of its image %+v", number.Address, number.Image)
	}
}

func TestResolveRefuses(t *testing.T) {
	p := mustStart(t, nil, mustBuild(t))
	tests := []struct {
		name, object, symbol string
		kind                 objfile.SymbolKind
		want                 error
	}{
		{"no object", "libnothing.so*", "malloc", objfile.Any, objfile.ErrNoObject},
		{"no symbol", "libc.so*", "no_such_function", objfile.Any, objfile.ErrNoSymbol},
		{"other kind", "libc.so*", "malloc", objfile.Variable, objfile.ErrNoSymbol},
		{"indirect", "program", "attune_indirect", objfile.Function, objfile.ErrIndirect},
		{"thread-local", "program", "attune_local", objfile.Any, objfile.ErrThreadLocal},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if _, err := objfile.Resolve(p.pid, test.object, test.symbol, test.kind); !errors.Is(err, test.want) {
				t.Errorf("error %v, want %v", err, test.want)
			}
		})
	}
	if _, err := objfile.Resolve(1<<30, "", "main", objfile.Any); !errors.Is(err, procid.ErrGone) {
		t.Errorf("no process: %v", err)
	}
}

func TestImagesOfLibraries(t *testing.T) {
	library := mustBuildLibrary(t)
	p := mustStart(t, []string{"LD_PRELOAD=" + library}, mustBuild(t))
	cache := objfile.NewCache()
	defer cache.Close()
	images, err := cache.Images(p.pid)
	if err != nil {
		t.Fatal(err)
	}
	seen := make(map[string]objfile.Image)
	for _, image := range images {
		seen[image.Name()] = image
	}
	got, ok := seen[filepath.Base(library)]
	if !got.Matches("libattunetest.so.2") {
		t.Errorf("%+v does not answer to the name that it is linked under", got)
	}
	if !ok || got.Path != library || seen["program"].Path == "" {
		t.Fatalf("images %v", seen)
	}
	// The slot of malloc in the library holds an address within libc.
	libc, err := objfile.ResolveIn(images, "libc.so*", "malloc", objfile.Function)
	if err != nil {
		t.Fatal(err)
	}
	file, err := got.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	slots, err := file.GOTSlots("malloc")
	if err != nil || len(slots) == 0 {
		t.Fatalf("slots %v, %v", slots, err)
	}
	if libc.Address < libc.Image.Start || libc.Address >= libc.Image.End {
		t.Errorf("malloc at %x lies outside of %+v", libc.Address, libc.Image)
	}
	// The bias and the file's link address lead to the same place by two ways.
	state, err := objfile.ResolveIn(images, library, "library_state", objfile.Variable)
	if err != nil || state.Image.Bias != got.Bias {
		t.Errorf("library_state: %+v, %v", state, err)
	}
}

// TestReplacedFile makes sure that a file which took the name of a mapped one
// is not taken for it.
func TestReplacedFile(t *testing.T) {
	library := mustBuildLibrary(t)
	p := mustStart(t, []string{"LD_PRELOAD=" + library}, mustBuild(t))
	before, err := objfile.Resolve(p.pid, "libattunetest.so", "library_state", objfile.Any)
	if err != nil {
		t.Fatal(err)
	}
	other := mustWrite(t, []byte("something else"), 0o755)
	if err := os.Rename(other, library); err != nil {
		t.Fatal(err)
	}
	after, err := objfile.Resolve(p.pid, "libattunetest.so", "library_state", objfile.Any)
	switch {
	case errors.Is(err, objfile.ErrNoObject):
		// Without privileges there is no way to the file.
	case err != nil || after.Address != before.Address:
		t.Errorf("resolved %+v, %v; before %+v", after, err, before)
	}
}

// TestCopiedVariable asks for a variable of a library that a program at fixed
// addresses has a copy of: the copy is what both use.
func TestCopiedVariable(t *testing.T) {
	library := mustBuildLibrary(t)
	path := targets.Build(t, "testdata/copier.c", "-no-pie", "-fno-pie", library, "-Wl,-rpath,"+filepath.Dir(library))
	if err := os.Symlink(library, filepath.Join(filepath.Dir(library), "libattunetest.so.2")); err != nil {
		t.Fatal(err)
	}
	p := mustStart(t, nil, path)
	got, err := objfile.Resolve(p.pid, "libattunetest.so*", "library_state", objfile.Variable)
	if want := p.addresses["library_state"]; err != nil || got.Address != want || got.Image.Name() != "copier" {
		t.Errorf("%x in %s, %v; the program tells %x", got.Address, got.Image.Path, err, want)
	}
}

func TestImageMatches(t *testing.T) {
	image := objfile.Image{Path: "/usr/lib/libc.so.6"}
	tests := []struct {
		pattern string
		want    bool
	}{
		{"libc.so*", true},
		{"libc.so.6", true},
		{"/usr/lib/libc.so.6", true},
		{"/usr/lib/*", true},
		{"", true},
		{"libm.so*", false},
		{"/lib/libc.so.6", false},
		{"[", false},
	}
	for _, test := range tests {
		t.Run(test.pattern, func(t *testing.T) {
			if got := image.Matches(test.pattern); got != test.want {
				t.Errorf("matches: %v", got)
			}
		})
	}
}

// A program is found by each name by which a person knows it: that of its file, of the
// symbolic link that was executed, and what ps(1) shows.
func TestProgramIsKnownAs(t *testing.T) {
	program := targets.BuildText(t, "multicall", `#include <stdio.h>
int main(void) { puts("ready"); fflush(stdout); return getchar() == 0; }
`)
	link := filepath.Join(t.TempDir(), "server-of-many")
	other := filepath.Join(t.TempDir(), "nobody")
	for _, name := range []string{link, other} {
		if err := os.Symlink(program, name); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command(link)
	cmd.Args[0] = "titled: *:6379 worker"
	target := targets.StartCommand(t, cmd)
	images, err := objfile.Images(target.PID)
	if err != nil {
		t.Fatal(err)
	}
	for pattern, want := range map[string]bool{
		"multicall": true, program: true, "server-of-many": true, link: true, "server-of-*": true, "titled": true, other: true,
		"nobody": false, "/nowhere/multicall": false, "server": false,
	} {
		found := 0
		for _, image := range images {
			if image.Matches(pattern) {
				found++
			}
		}
		if found != map[bool]int{true: 1}[want] {
			t.Errorf("%s matches %d objects, want it to match: %v", pattern, found, want)
		}
	}
	if err := objfile.NoObject(images, "multicalls"); !errors.Is(err, objfile.ErrNoObject) ||
		err.Error() != "no such object is mapped: multicalls; the program is multicall; close to it: multicall" {
		t.Error(err)
	}
}
