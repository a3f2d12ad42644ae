// SPDX-License-Identifier: Apache-2.0

package trusted

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/internal/testing/files"
)

func TestFile(t *testing.T) {
	for _, tt := range []struct {
		mode, uid uint32
		want      string // part of the reason; empty: there is none
	}{
		{unix.S_IFREG | 0o644, 0, ""},
		{unix.S_IFREG | 0o600, 4711, ""},
		{unix.S_IFREG | 0o644, 4712, "chown 0 f"},
		{unix.S_IFREG | 0o664, 0, "chmod go-w f"},
		{unix.S_IFREG | 0o646, 0, "chmod go-w f"},
		{unix.S_IFIFO | 0o600, 0, "no regular file"},
	} {
		err := File("f", &unix.Stat_t{Mode: tt.mode, Uid: tt.uid}, 0, 4711)
		if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%o of %d: %v, want %q", tt.mode, tt.uid, err, tt.want)
		}
	}
}

func TestOpen(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	files.Write(t, path, "", 0o600)
	file, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	_ = file.Close()
	if err := os.Chmod(path, 0o602); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(path); err == nil {
		t.Error("taken, though everybody may have written it")
	}
	if err := unix.Mkfifo(path+"p", 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(path + "p"); err == nil {
		t.Error("a pipe is taken")
	}
}
