// SPDX-License-Identifier: Apache-2.0

package dmlib

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"

	"github.com/attune-hpc/attune/internal/outfile"
)

// Name returns the file name of a library with these bytes. It holds their
// hash: programs that run keep the library they mapped, whatever is installed
// beside it, and DMLib recognises its entry in LD_PRELOAD by this name.
func Name(library []byte) string {
	sum := sha256.Sum256(library)
	return "libattune-dm-" + hex.EncodeToString(sum[:8]) + ".so"
}

// Install writes the embedded library into the existing directory dir and
// returns its path. A file of the same name is used again if its bytes are
// right and replaced if they are not. Any number of processes may install into
// one directory at a time; a reader never sees a partial file.
func Install(dir string) (string, error) {
	library, err := Library()
	if err != nil {
		return "", err
	}
	return install(dir, library)
}

func install(dir string, library []byte) (string, error) {
	path := filepath.Join(dir, Name(library))
	if usable(path, library) {
		return path, nil
	}
	if err := outfile.Put(path, library, 0o755); err != nil {
		return "", fmt.Errorf("install dmlib: %w", err)
	}
	return path, nil
}

// usable reports whether path is a regular file (no symbolic link that
// somebody else could turn round) with these bytes that everybody may read
// and run.
func usable(path string, library []byte) bool {
	info, err := os.Lstat(path)
	if err != nil || !info.Mode().IsRegular() || info.Mode().Perm()&0o555 != 0o555 {
		return false
	}
	have, err := os.ReadFile(path)
	return err == nil && bytes.Equal(have, library)
}
