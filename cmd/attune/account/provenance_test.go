// SPDX-License-Identifier: Apache-2.0

package account

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/attune-hpc/attune/internal/account"
	"github.com/attune-hpc/attune/internal/account/crate"
)

// TestCrateByLink: files have names relative to a crate whose directory was reached by a symbolic link.
func TestCrateByLink(t *testing.T) {
	top, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	home, link := filepath.Join(top, "gpfs"), filepath.Join(top, "home")
	if err := errors.Join(os.Mkdir(home, 0o700), os.Symlink("gpfs", link)); err != nil {
		t.Fatal(err)
	}
	t.Chdir(link)
	t.Setenv("PWD", link)
	root, err := openCrate(".")
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	out := account.DataFile{Path: filepath.Join(home, "out"), SHA256: strings.Repeat("ab", 32)}
	if err := writeCrate(root, &account.Account{Command: []string{"true"}, Provenance: &account.Provenance{Outputs: []account.DataFile{out}}}); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(home, crate.MetadataFile))
	if err != nil || !strings.Contains(string(text), `"@id": "out"`) {
		t.Errorf("%s, %v", text, err)
	}
}

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
