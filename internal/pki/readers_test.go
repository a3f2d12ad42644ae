// SPDX-License-Identifier: Apache-2.0

package pki

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/attune-hpc/attune/internal/testing/files"
)

// TestReplacedKeyKeepsItsReaders: the Analyzer's group reads the next key as well, and
// nobody reads one whose predecessor was open to all.
func TestReplacedKeyKeepsItsReaders(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only a key of root's has other readers")
	}
	const group = 61001
	for before, after := range map[os.FileMode]os.FileMode{0o600: 0o600, 0o640: 0o640, 0o644: 0o600, 0o660: 0o600} {
		dir := t.TempDir()
		cert, key := filepath.Join(dir, "node.crt"), filepath.Join(dir, "node.key")
		files.Write(t, key, "", 0o600)
		if err := os.Chown(key, 0, group); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(key, before); err != nil {
			t.Fatal(err)
		}
		if err := (Issued{Cert: []byte("c"), Key: []byte("k")}).Write(cert, key, true); err != nil {
			t.Fatal(err)
		}
		info, err := os.Stat(key)
		if err != nil {
			t.Fatal(err)
		}
		want := uint32(0)
		if after&0o040 != 0 {
			want = group
		}
		if gid := info.Sys().(*syscall.Stat_t).Gid; info.Mode().Perm() != after || gid != want {
			t.Errorf("mode %o before: %o, group %d; want %o, group %d", before, info.Mode().Perm(), gid, after, want)
		}
	}
}
