// SPDX-License-Identifier: Apache-2.0

package instance

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/attune-hpc/attune/internal/testing/files"
)

func TestDirectory(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a", "b")
	for range 2 {
		if err := Directory(path, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod(path, 0o777); err != nil {
		t.Fatal(err)
	}
	if err := Directory(path, 0o755); err == nil || !strings.Contains(err.Error(), "chmod go-w") {
		t.Errorf("one that everybody may change: %v", err)
	}
	if err := Directory("/tmp", 0o755); err == nil {
		t.Error("/tmp is taken")
	}
	file := filepath.Join(t.TempDir(), "file")
	files.Write(t, file, "", 0o600)
	if err := Directory(file, 0o755); err == nil {
		t.Error("a file is taken")
	}
}

func TestDirectoryOfAnotherUser(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can give a directory away")
	}
	path := t.TempDir()
	if err := os.Chown(path, 61001, 61001); err != nil {
		t.Fatal(err)
	}
	if err := Directory(path, 0o755); err == nil || !strings.Contains(err.Error(), "belongs to user 61001") {
		t.Errorf("error %v", err)
	}
}
