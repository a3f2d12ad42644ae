// SPDX-License-Identifier: Apache-2.0

package account

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/attune-hpc/attune/internal/account"
)

// TestReplacedCrate: the command's user puts a link in the directory's place, to where they may not write.
func TestReplacedCrate(t *testing.T) {
	dir, elsewhere := filepath.Join(t.TempDir(), "crate"), t.TempDir()
	root, err := openCrate(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	if err := errors.Join(os.Rename(dir, dir+".1"), os.Symlink(elsewhere, dir)); err != nil {
		t.Fatal(err)
	}
	if err := writeCrate(root, &account.Account{Command: []string{"true"}}); err != nil {
		t.Fatal(err)
	}
	if files, err := os.ReadDir(elsewhere); err != nil || len(files) > 0 {
		t.Errorf("written elsewhere: %v, %v", files, err)
	}
	if files, err := os.ReadDir(dir + ".1"); err != nil || len(files) != 2 {
		t.Errorf("written: %v, %v", files, err)
	}
	if _, err := openCrate(dir + ".1"); !errors.Is(err, os.ErrExist) {
		t.Errorf("error %v", err)
	}
}
