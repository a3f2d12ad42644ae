// SPDX-License-Identifier: Apache-2.0

package track

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/attune-hpc/attune/controller/bpf/procevent"
	"github.com/attune-hpc/attune/internal/objfile"
	"github.com/attune-hpc/attune/internal/procid"
	"github.com/attune-hpc/attune/internal/readers"
	"github.com/attune-hpc/attune/internal/testing/files"
)

// A helper finds files whose names are no UTF-8, as this process would.
func TestHelpersFindAnyName(t *testing.T) {
	helpers := readers.New(readers.Options{})
	t.Cleanup(func() { _ = helpers.Close() })
	dir := filepath.Join(t.TempDir(), "caf\xe9")
	file := filepath.Join(dir, "program")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	files.Write(t, file, "program", 0o755)
	st, err := procid.FileOf(file)
	if err != nil {
		t.Fatal(err)
	}
	for name, by := range map[string]*readers.Pool{"helper": helpers, "this process": nil} {
		known := programs{by, make(map[programFile]string)}
		program := &procevent.Program{Device: st.Dev, Inode: st.Ino, StartedAs: file}
		if got := known.path(program, nil, 0); filepath.Base(filepath.Dir(got)) != "caf?" {
			t.Errorf("%s: path %q", name, got)
		}
		sum, err := Digest(t.Context(), by, objfile.NewDigests(""), 0, File{Path: []byte(file)})
		if want := "1310ca2c8932dbd118668bd97442558a3e1f546b5e15c69699dfbd6024f548d8"; err != nil || sum != want {
			t.Errorf("%s: %q, %v", name, sum, err)
		}
	}
}

// TestReusedInode: a program is not taken for one that was deleted and whose inode it has.
func TestReusedInode(t *testing.T) {
	known := programs{nil, make(map[programFile]string)}
	first, second := filepath.Join(t.TempDir(), "first"), filepath.Join(t.TempDir(), "second")
	files.Write(t, first, "", 0o755)
	st, err := procid.FileOf(first)
	if err != nil {
		t.Fatal(err)
	}
	path := func(startedAs string) string {
		return known.path(&procevent.Program{Device: st.Dev, Inode: st.Ino, StartedAs: startedAs}, nil, 0)
	}
	if got := path(first); got != first {
		t.Errorf("path %q", got)
	}
	if err := os.Rename(first, second); err != nil { // as if another file had the inode
		t.Fatal(err)
	}
	if got := path(second); got != second {
		t.Errorf("path %q, want %q", got, second)
	}
	if got := path("third"); got != "" {
		t.Errorf("path %q of a program that is not found", got)
	}
}
