// SPDX-License-Identifier: Apache-2.0

package outfile

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/internal/testing/files"
)

const before, document = "what was there before, which is longer", "the document"

// placed opens a place, checks that what is there is as it was, and writes.
func placed(t *testing.T, path string, encode func(io.Writer) error) error {
	t.Helper()
	_, missing := os.Stat(path)
	p, err := OpenPlace(path)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(path); missing == nil && (err != nil || string(got) != before) {
		t.Errorf("%q is there before anything is written", got)
	}
	return errors.Join(p.Write(encode), p.Close())
}

func writeDocument(w io.Writer) error {
	_, err := io.WriteString(w, document)
	return err
}

// TestPlace: a file has what it had until there is a document, then all of that, and is what it was to others.
func TestPlace(t *testing.T) {
	for _, row := range []struct {
		name    string
		prepare func(file, path string) error // path is where the document goes, by which file is reached
		same    bool                          // the file itself is written to
	}{
		{"a file", os.Rename, false},
		{"a link", os.Symlink, false},
		{"a hard link", os.Link, true},
		{"a link to nothing", func(file, path string) error { return errors.Join(os.Remove(file), os.Symlink(file, path)) }, false},
		{"nothing", func(file, _ string) error { return os.Remove(file) }, false},
	} {
		t.Run(row.name, func(t *testing.T) {
			dir := t.TempDir()
			file, path := filepath.Join(dir, "file"), filepath.Join(dir, "path")
			err := errors.Join(os.WriteFile(file, []byte(before), 0o600), os.Chmod(file, 0o604))
			if err = errors.Join(err, row.prepare(file, path)); err != nil {
				t.Fatal(err)
			}
			old, missing := os.Stat(path)
			link, _ := os.Readlink(path)
			if err := placed(t, path, writeDocument); err != nil {
				t.Fatal(err)
			}
			if got, err := os.ReadFile(path); err != nil || string(got) != document {
				t.Errorf("%q, %v", got, err)
			}
			now, err := os.Stat(path)
			if err != nil {
				t.Fatal(err)
			}
			if missing == nil && (now.Mode() != old.Mode() || os.SameFile(now, old) != row.same) {
				t.Errorf("mode %v, the same: %v", now.Mode(), os.SameFile(now, old))
			}
			if target, _ := os.Readlink(path); target != link {
				t.Errorf("a link to %q, was one to %q", target, link)
			}
			onlyHas(t, dir, "file", "path")
		})
	}
}

// onlyHas checks that there is nothing else in a directory.
func onlyHas(t *testing.T, dir string, names ...string) {
	t.Helper()
	allowed := make(map[string]bool)
	for _, name := range names {
		allowed[name] = true
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if !allowed[e.Name()] {
			t.Errorf("%s is left", e.Name())
		}
	}
}

// TestPlaceOfABrokenDocument: what was there stays.
func TestPlaceOfABrokenDocument(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	files.Write(t, path, before, 0o600)
	err := placed(t, path, func(w io.Writer) error { return errors.Join(writeDocument(w), unix.EIO) })
	if got, read := os.ReadFile(path); !errors.Is(err, unix.EIO) || read != nil || string(got) != before {
		t.Errorf("%v; %q, %v", err, got, read)
	}
	onlyHas(t, filepath.Dir(path), "file")
}

func TestPlaceRefuses(t *testing.T) {
	dir := t.TempDir()
	for path, want := range map[string]error{
		dir: unix.EISDIR, filepath.Join(dir, "no/file"): unix.ENOENT, "/dev/fd/9999": unix.EBADF,
	} {
		p, err := OpenPlace(path)
		if !errors.Is(err, want) || p.Named() {
			t.Errorf("%s: %v, want %v", path, err, want)
		}
	}
}

// TestEmpty: a file is emptied, one that the shell has opened is not.
func TestEmpty(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	files.Write(t, path, before, 0o600)
	shells, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer shells.Close()
	for _, row := range []struct{ path, want string }{{filepath.Join("/dev/fd", strconv.Itoa(int(shells.Fd()))), before}, {path, ""}} {
		f, err := Open(row.path, os.O_CREATE)
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(Empty(f), f.Close()); err != nil {
			t.Error(err)
		}
		if got, err := os.ReadFile(path); err != nil || string(got) != row.want {
			t.Errorf("%s: %q, %v; want %q", row.path, got, err, row.want)
		}
	}
}
