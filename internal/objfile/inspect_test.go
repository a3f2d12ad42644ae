// SPDX-License-Identifier: Apache-2.0

package objfile_test

import (
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/internal/objfile"
	"github.com/attune-hpc/attune/internal/testing/files"
)

// mustWrite writes an executable file.
func mustWrite(t *testing.T, content []byte, mode os.FileMode) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "file")
	files.Write(t, path, content, mode)
	if err := os.Chmod(path, mode); err != nil {
		t.Fatal(err)
	}
	return path
}

// mustPatch copies a file with some bytes replaced.
func mustPatch(t *testing.T, path string, patch func(data []byte) []byte) string {
	t.Helper()
	data := files.Read(t, path)
	return mustWrite(t, patch(data), 0o755)
}

func TestInspect(t *testing.T) {
	dynamic := mustBuild(t)
	fifo := filepath.Join(t.TempDir(), "fifo")
	if err := unix.Mkfifo(fifo, 0o755); err != nil {
		t.Fatal(err)
	}
	header := func(offset int, value byte) string {
		return mustPatch(t, dynamic, func(d []byte) []byte { d[offset] = value; return d })
	}
	tests := []struct {
		name, path string
		kind       objfile.Kind
		runnable   error
		refusal    string // part of it; "": can be preloaded
	}{
		{"missing", "/nonexistent/program", objfile.KindMissing, objfile.ErrNotFound, "missing"},
		{"directory", "/etc", objfile.KindDirectory, objfile.ErrCannotExecute, "directory"},
		{"fifo", fifo, objfile.KindSpecial, objfile.ErrCannotExecute, "special"},
		{"not executable", mustWrite(t, []byte("#!/bin/sh\n"), 0o644), objfile.KindNotExecutable, objfile.ErrCannotExecute, "not executable"},
		{"empty", mustWrite(t, nil, 0o755), objfile.KindNotELF, objfile.ErrCannotExecute, "not ELF"},
		{"text", mustWrite(t, []byte("echo hello\n"), 0o755), objfile.KindNotELF, objfile.ErrCannotExecute, "not ELF"},
		{"script", mustWrite(t, []byte("#!/bin/sh -e\n"), 0o755), objfile.KindScript, nil, ""},
		{"script by env", mustWrite(t, []byte("#!/usr/bin/env -S A=b sh -e\n"), 0o755), objfile.KindScript, nil, ""},
		{"script of a missing interpreter", mustWrite(t, []byte("#! /nonexistent/sh"), 0o755), objfile.KindScript, objfile.ErrNotFound, "missing"},
		{"script of a missing program", mustWrite(t, []byte("#!/usr/bin/env no-such-program\n"), 0o755), objfile.KindScript, objfile.ErrNotFound, "missing"},
		{"script without interpreter", mustWrite(t, []byte("#!\n"), 0o755), objfile.KindScript, objfile.ErrCannotExecute, "script"},
		{"dynamic", dynamic, objfile.KindDynamic, nil, ""},
		{"dynamic without PIE", mustBuild(t, "-no-pie"), objfile.KindDynamic, nil, ""},
		{"stripped", mustBuild(t, "-s"), objfile.KindDynamic, nil, ""},
		{"static", mustBuild(t, "-static"), objfile.KindStatic, nil, "statically linked"},
		{"static PIE", mustBuild(t, "-static-pie"), objfile.KindStaticPIE, nil, "statically linked"},
		{"script of a static program", mustWrite(t, []byte("#!"+mustBuild(t, "-static")), 0o755), objfile.KindScript, nil, "statically linked"},
		{"musl", mustBuild(t, "-Wl,--dynamic-linker=/nonexistent/ld-musl-x86_64.so.1"), objfile.KindDynamicMusl, objfile.ErrNotFound, "musl"},
		{"other loader", mustBuild(t, "-Wl,--dynamic-linker=/bin/sh"), objfile.KindDynamicOther, nil, "unknown dynamic loader"},
		{"library", mustBuildLibrary(t), objfile.KindLibrary, objfile.ErrCannotExecute, "library"},
		{"loader", interpreter(t, dynamic), objfile.KindLoader, nil, ""},
		{"32-bit", header(4, 1), objfile.KindELF32, nil, "32-bit"},
		{"class of no kind", header(4, 9), objfile.KindCorrupt, objfile.ErrCannotExecute, "corrupt"},
		{"other machine", header(18, 243), objfile.KindOtherMachine, objfile.ErrCannotExecute, "RISC"},
		{"relocatable", header(16, 1), objfile.KindCorrupt, objfile.ErrCannotExecute, "corrupt"},
		{"cut off in the header", mustPatch(t, dynamic, func(d []byte) []byte { return d[:30] }), objfile.KindCorrupt, objfile.ErrCannotExecute, "corrupt"},
		{"cut off in a segment", mustPatch(t, dynamic, func(d []byte) []byte { return d[:len(d)/2] }), objfile.KindCorrupt, objfile.ErrCannotExecute, "corrupt"},
		{"program headers nowhere", mustPatch(t, dynamic, func(d []byte) []byte {
			binary.LittleEndian.PutUint64(d[32:], 1<<62)
			return d
		}), objfile.KindCorrupt, objfile.ErrCannotExecute, "corrupt"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got := objfile.Inspect(test.path)
			if got.Kind != test.kind {
				t.Errorf("kind %v (%s), want %v", got.Kind, got.Detail, test.kind)
			}
			if err := got.Runnable(); !errors.Is(err, test.runnable) {
				t.Errorf("runnable: %v, want %v", err, test.runnable)
			}
			refusal := got.PreloadRefusal()
			if (refusal == "") != (test.refusal == "") || !strings.Contains(refusal, test.refusal) {
				t.Errorf("refusal %q, want %q in it", refusal, test.refusal)
			}
		})
	}
}

// interpreter asks readelf for the dynamic loader of a program.
func interpreter(t *testing.T, path string) string {
	t.Helper()
	_, rest, ok := strings.Cut(mustRun(t, "readelf", "-lW", path), "program interpreter: ")
	loader, _, end := strings.Cut(rest, "]")
	if !ok || !end {
		t.Fatalf("readelf shows no interpreter of %s", path)
	}
	return loader
}

func TestInspectDetails(t *testing.T) {
	path := mustBuild(t)
	got := objfile.Inspect(path)
	if want := interpreter(t, path); got.Interpreter != want {
		t.Errorf("interpreter %q; want %q", got.Interpreter, want)
	}
}

func TestPrivilegedPrograms(t *testing.T) {
	path := mustBuild(t)
	tests := []struct {
		name string
		mode os.FileMode
		want objfile.Privileged
	}{
		{"plain", 0o755, objfile.NotPrivileged},
		{"setuid to oneself", 0o755 | os.ModeSetuid, objfile.NotPrivileged},
		{"setgid to oneself", 0o755 | os.ModeSetgid, objfile.NotPrivileged},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if err := os.Chmod(path, test.mode); err != nil {
				t.Fatal(err)
			}
			if got := objfile.Inspect(path); got.Privileged != test.want || got.PreloadRefusal() != "" {
				t.Errorf("%v, %q", got.Privileged, got.PreloadRefusal())
			}
		})
	}
	// A setuid program of another user: any user's own system has one.
	for _, other := range []string{"/usr/bin/passwd", "/usr/bin/su", "/bin/mount"} {
		info, err := os.Stat(other)
		if err != nil || info.Mode()&os.ModeSetuid == 0 || os.Getuid() == 0 {
			continue
		}
		if got := objfile.Inspect(other); got.Privileged != objfile.SetUID || !strings.Contains(got.PreloadRefusal(), "LD_PRELOAD") {
			t.Errorf("%s: %v, %q", other, got.Privileged, got.PreloadRefusal())
		}
	}
	if os.Getuid() == 0 { // make one: owned by somebody else
		if err := errors.Join(os.Chown(path, 65534, 65534), os.Chmod(path, 0o755|os.ModeSetuid)); err != nil {
			t.Fatal(err)
		}
		if got := objfile.Inspect(path); got.Privileged != objfile.SetUID {
			t.Errorf("setuid to nobody: %v", got.Privileged)
		}
		if err := os.Chmod(path, 0o755|os.ModeSetgid); err != nil {
			t.Fatal(err)
		}
		if got := objfile.Inspect(path); got.Privileged != objfile.SetGID {
			t.Errorf("setgid to nogroup: %v", got.Privileged)
		}
	}
}

func TestScriptsThatRunOneAnother(t *testing.T) {
	path := mustWrite(t, []byte("#!/bin/sh\n"), 0o755)
	for range 8 {
		path = mustWrite(t, []byte("#!"+path+"\n"), 0o755)
	}
	got := objfile.Inspect(path)
	if err := got.Runnable(); !errors.Is(err, objfile.ErrCannotExecute) || !strings.Contains(err.Error(), "nested too deep") {
		t.Errorf("runnable: %v", err)
	}
}
