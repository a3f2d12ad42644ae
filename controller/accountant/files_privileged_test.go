// SPDX-License-Identifier: Apache-2.0

//go:build privileged

package accountant

import (
	"bufio"
	"bytes"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/attune-hpc/attune/internal/account"
	"github.com/attune-hpc/attune/internal/regular"
	"github.com/attune-hpc/attune/internal/testing/files"
	"github.com/attune-hpc/attune/internal/testing/targets"
)

// TestFilesTruth: of each file, by whatever call, and of the network, the account says
// to the byte and the call what the program says itself.
func TestFilesTruth(t *testing.T) {
	program := targets.Build(t, "testdata/files.c", "-O2")
	for seed := range 4 {
		folder := t.TempDir()
		said := filepath.Join(t.TempDir(), "said")
		a, exit := mustRun(t, Options{Files: true}, "sh", "-c", fmt.Sprintf("%s %s %d >%s", program, folder, seed, said))
		if exit.Code != 0 {
			t.Fatalf("ended with %+v", exit)
		}
		for _, name := range fileFields {
			if a.Accuracy[name] != account.Exact {
				t.Errorf("%s is %s: %s", name, a.Accuracy[name], a.Missing[name])
			}
		}
		byPath, unnamed := make(map[string]account.File), uint64(0)
		for _, f := range a.Files {
			byPath[f.Path] = f
			if strings.HasPrefix(f.Path, folder+"/#") {
				unnamed = *f.Written
			}
		}
		if unnamed != 12345 {
			t.Errorf("%d bytes were written to the file without a name, want 12345", unnamed)
		}
		text := files.Read(t, said)
		compareFiles(t, a, byPath, text)
		if f := byPath[program]; f.Executions == nil || *f.Executions != 1 {
			t.Errorf("the program: %+v", f)
		}
		file, err := regular.OpenInPlace(program, byPath[program].Inodes...)
		if err != nil { // package provenance opens files so
			t.Fatal(err)
		}
		_ = file.Close() // nothing was read
	}
}

// compareFiles compares an account with what the program said.
func compareFiles(t *testing.T, a *account.Account, byPath map[string]account.File, said []byte) {
	t.Helper()
	lines := 0
	for scanner := bufio.NewScanner(bytes.NewReader(said)); scanner.Scan(); lines++ {
		name, want, _ := strings.Cut(scanner.Text(), " ")
		got := fmt.Sprint(*a.IO.NetworkReceived, *a.IO.NetworkSent)
		if name != "network" {
			f, known := byPath[name]
			if !known {
				t.Errorf("%s is not in the account", name)
				continue
			}
			got = fmt.Sprint(*f.Read, *f.Written, *f.ReadCalls, *f.WrittenCalls, *f.Opens, *f.Maps)
		}
		if got != want {
			t.Errorf("%s: %s, the program's own count is %s", name, got, want)
		}
	}
	if lines != 5 {
		t.Errorf("the program said %d lines: %s", lines, said)
	}
}

// TestFilesOfMemory: files that never had a path have names of their own.
func TestFilesOfMemory(t *testing.T) {
	program := targets.BuildText(t, "memory", `#define _GNU_SOURCE
#include <sys/mman.h>
#include <unistd.h>
int main(void) {
	int a = memfd_create("one", 0), b = memfd_create("another", 0);
	return write(a, "12345", 5) + write(b, "123", 3) != 8;
}`)
	a, exit := mustRun(t, Options{Files: true}, program)
	written := make(map[string]uint64)
	for _, f := range a.Files {
		written[f.Path] = *f.Written
	}
	if exit.Code != 0 || written["/memfd:one"] != 5 || written["/memfd:another"] != 3 {
		t.Errorf("ended with %+v; bytes written %v", exit, written)
	}
}

// TestFilesOfRings: what goes past system calls is not passed over in silence.
func TestFilesOfRings(t *testing.T) {
	program := targets.BuildText(t, "ring", `#include <sys/syscall.h>
#include <unistd.h>
int main(void) { unsigned long context = 0; return syscall(SYS_io_setup, 1, &context) != 0; }`)
	a, exit := mustRun(t, Options{Files: true}, program)
	if exit.Code != 0 || a.Accuracy["files"] != account.Bound || !strings.Contains(a.Missing["files"], "io_submit") {
		t.Errorf("ended with %+v; files are %s: %q", exit, a.Accuracy["files"], a.Missing["files"])
	}
}
