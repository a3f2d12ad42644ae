// SPDX-License-Identifier: Apache-2.0

package dmlib

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/attune-hpc/attune/internal/testing/files"
)

var sample = []byte("\x7fELF, as far as Install can tell")

func TestInstall(t *testing.T) {
	rows := []struct {
		name   string
		before func(t *testing.T, path string)
	}{
		{"empty directory", func(*testing.T, string) {}},
		{"same bytes are there", func(t *testing.T, path string) { mustWrite(t, path, sample, 0o755) }},
		{"other bytes are there", func(t *testing.T, path string) { mustWrite(t, path, sample[:9], 0o755) }},
		{"not executable", func(t *testing.T, path string) { mustWrite(t, path, sample, 0o600) }},
		{"symbolic link", func(t *testing.T, path string) {
			other := filepath.Join(t.TempDir(), "other")
			mustWrite(t, other, sample, 0o755)
			if err := os.Symlink(other, path); err != nil {
				t.Fatal(err)
			}
		}},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			dir := t.TempDir()
			row.before(t, filepath.Join(dir, Name(sample)))
			path, err := install(dir, sample)
			if err != nil {
				t.Fatal(err)
			}
			checkInstalled(t, dir, path)
		})
	}
}

func TestInstallKeepsIdenticalFile(t *testing.T) {
	dir := t.TempDir()
	path, err := install(dir, sample)
	if err != nil {
		t.Fatal(err)
	}
	first := mustStat(t, path)
	if _, err := install(dir, sample); err != nil {
		t.Fatal(err)
	}
	if !os.SameFile(first, mustStat(t, path)) {
		t.Error("an identical library was written again")
	}
}

func TestInstallConcurrently(t *testing.T) {
	dir := t.TempDir()
	big := bytes.Repeat(sample, 10000)
	var group sync.WaitGroup
	for range 16 {
		group.Go(func() {
			path, err := install(dir, big)
			if err != nil {
				t.Error(err)
				return
			}
			if have, err := os.ReadFile(path); err != nil || !bytes.Equal(have, big) {
				t.Errorf("read %d bytes of %d, error %v", len(have), len(big), err)
			}
		})
	}
	group.Wait()
	mustHoldOneFile(t, dir)
}

func TestInstallReportsDirectory(t *testing.T) {
	if _, err := install(filepath.Join(t.TempDir(), "missing"), sample); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("error %v, want one that is os.ErrNotExist", err)
	}
}

// TestLibrary holds for both kinds of build.
func TestLibrary(t *testing.T) {
	library, err := Library()
	_, statErr := os.Stat("build/libattune-dm.so")
	switch {
	case statErr == nil && err != nil:
		t.Errorf("the library is built, but Library returns %v", err)
	case statErr == nil && !bytes.HasPrefix(library, []byte("\x7fELF")):
		t.Error("the embedded library is no ELF file")
	case statErr != nil && !errors.Is(err, ErrNotBuilt):
		t.Errorf("error %v, want ErrNotBuilt", err)
	}
}

func checkInstalled(t *testing.T, dir, path string) {
	t.Helper()
	if filepath.Dir(path) != dir {
		t.Errorf("installed at %s, want in %s", path, dir)
	}
	info := mustStat(t, path)
	if info.Mode() != 0o755 {
		t.Errorf("mode %v, want a regular file with 0755", info.Mode())
	}
	if have, err := os.ReadFile(path); err != nil || !bytes.Equal(have, sample) {
		t.Errorf("content %q, error %v", have, err)
	}
	mustHoldOneFile(t, dir)
}

func mustHoldOneFile(t *testing.T, dir string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(entries) != 1 {
		t.Errorf("%d files, want the library alone: %v", len(entries), entries)
	}
}

func mustStat(t *testing.T, path string) os.FileInfo {
	t.Helper()
	info, err := os.Lstat(path)
	if err != nil {
		t.Fatal(err)
	}
	return info
}

func mustWrite(t *testing.T, path string, content []byte, mode os.FileMode) {
	t.Helper()
	files.Write(t, path, content, mode)
	if err := os.Chmod(path, mode); err != nil {
		t.Fatal(err)
	}
}
