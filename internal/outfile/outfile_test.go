// SPDX-License-Identifier: Apache-2.0

package outfile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/internal/testing/files"
)

func TestDescriptorIsSharedNotReopened(t *testing.T) {
	file, err := os.Create(filepath.Join(t.TempDir(), "out"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if _, err := file.WriteString("the program's, "); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{"/dev/fd", "/proc/self/fd", "/dev/../dev/fd"} {
		path := fmt.Sprintf("%s/%d", dir, file.Fd())
		if !Stream(path) {
			t.Errorf("%s is taken for a file to replace", path)
		}
		again, err := Open(path, os.O_CREATE|os.O_TRUNC)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := again.WriteString("ours, "); err != nil {
			t.Fatal(err)
		}
		if err := again.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := file.WriteString("the program's"); err != nil {
		t.Fatal(err)
	}
	const want = "the program's, ours, ours, ours, the program's"
	if got, err := os.ReadFile(file.Name()); err != nil || string(got) != want {
		t.Errorf("%q, %v; want %q", got, err, want)
	}
}

func TestOpenRefuses(t *testing.T) {
	dir := t.TempDir()
	fifo := filepath.Join(dir, "fifo")
	if err := unix.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name, path string
		want       error
	}{
		{"FIFO without reader", fifo, ErrNoReader},
		{"closed descriptor", "/dev/fd/9999", unix.EBADF},
		{"no descriptor", "/dev/fd/x", fs.ErrNotExist},
		{"no such directory", filepath.Join(dir, "no/file"), fs.ErrNotExist},
		{"directory", dir, unix.EISDIR},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			file, err := Open(tt.path, os.O_CREATE|os.O_TRUNC)
			if err == nil {
				file.Close()
			}
			if !errors.Is(err, tt.want) {
				t.Errorf("%v, want %v", err, tt.want)
			}
		})
	}
}

func TestStream(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	files.Write(t, file, "", 0o600)
	for path, want := range map[string]bool{
		file: false, dir: false, filepath.Join(dir, "new"): false,
		os.DevNull: true, "-": true, "/dev/stdout": true, "/dev/stderr": true,
	} {
		if got := Stream(path); got != want {
			t.Errorf("%s: %v, want %v", path, got, want)
		}
	}
}
