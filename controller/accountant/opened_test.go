// SPDX-License-Identifier: Apache-2.0

package accountant

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/internal/account"
	"github.com/attune-hpc/attune/internal/testing/files"
)

// TestOpenFiles: files are known by what they are open or mapped for, once for each path.
func TestOpenFiles(t *testing.T) {
	folder := t.TempDir()
	path := func(name string) string { return filepath.Join(folder, name) }
	open := func(name string, flags int) *os.File {
		t.Helper()
		file, err := os.OpenFile(path(name), flags, 0o666)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = file.Close() })
		return file
	}
	for _, name := range []string{"in", "mapped", "shared", "handle"} {
		files.Write(t, path(name), make([]byte, 1), 0o666)
	}
	open("in", os.O_RDONLY)
	open("out", os.O_WRONLY|os.O_CREATE|os.O_APPEND)
	open("both", os.O_RDONLY|os.O_CREATE)
	open("both", os.O_WRONLY)
	open("handle", unix.O_PATH)
	open("removed", os.O_RDWR|os.O_CREATE)
	if err := os.Remove(path("removed")); err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct {
		name         string
		flags, share int
	}{{"mapped", os.O_RDONLY, unix.MAP_PRIVATE}, {"shared", os.O_RDWR, unix.MAP_SHARED}} {
		file := open(row.name, row.flags)
		memory, err := unix.Mmap(int(file.Fd()), 0, 1, unix.PROT_READ|unix.PROT_WRITE, row.share)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = unix.Munmap(memory) })
		if err := file.Close(); err != nil {
			t.Fatal(err)
		}
	}
	open("replaced", os.O_RDWR|os.O_CREATE)
	if err := os.Rename(path("replaced"), path("again")); err != nil {
		t.Fatal(err)
	}
	open("replaced", os.O_RDWR|os.O_CREATE)

	o := newOpened()
	o.look(os.Getpid(), 1)
	if err := os.Rename(path("again"), path("in")); err != nil { // another file of that path
		t.Fatal(err)
	}
	o.look(os.Getpid(), 2)
	got, written := make(map[string]string), true
	for _, f := range o.end() {
		if written = written && f.WasWritten(); f.WasWritten() != written {
			t.Errorf("%s, which was written, comes after one that was not", f.Path)
		}
		if name, inside := strings.CutPrefix(f.Path, folder+"/"); inside {
			got[name] = f.Access
		}
		if f.Path == path("in") && len(f.Inodes) != 2 {
			t.Errorf("inodes %v had the path %s, want 2", f.Inodes, f.Path)
		}
	}
	want := map[string]string{
		"in": account.AccessBoth, "out": account.AccessWrite, "both": account.AccessBoth, "removed": account.AccessBoth,
		"mapped": account.AccessRead, "shared": account.AccessBoth, "replaced": account.AccessBoth, "again": account.AccessBoth,
	}
	for name := range want {
		if got[name] != want[name] {
			t.Errorf("%s was open for %q, want %q", name, got[name], want[name])
		}
	}
	if len(got) != len(want) {
		t.Errorf("found %v, want %v", got, want)
	}
}

// TestFilesWithoutRoot: the account tells how little it knows.
func TestFilesWithoutRoot(t *testing.T) {
	for name, options := range map[string]Options{"asked for": {Files: true, WithoutKernel: true}, "not asked for": {WithoutKernel: true}} {
		t.Run(name, func(t *testing.T) {
			a, exit := mustRun(t, options, "true")
			if exit.Code != 0 || (a.Files != nil) != options.Files || (a.Accuracy["files"] == account.Sampled) != options.Files {
				t.Errorf("ended with %+v; files %v are %q", exit, a.Files, a.Accuracy["files"])
			}
			for _, field := range fileFields {
				if why := a.Missing[field]; strings.Contains(why, "kernel's account") != options.Files {
					t.Errorf("%s: missing for %q", field, why)
				}
			}
		})
	}
}
