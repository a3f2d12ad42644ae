// SPDX-License-Identifier: Apache-2.0

package tunlet

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// replace renames one file or directory to another, and what was there to old.
func replace(from, to, old string) error {
	if err := os.Rename(to, old); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if err := os.Rename(from, to); err != nil {
		return errors.Join(err, os.Rename(old, to))
	}
	return nil
}

// copyAll copies a file, or a directory with all that is in it. Links are followed in
// what was named, and refused below it.
func copyAll(from, to string) error {
	from, err := filepath.EvalSymlinks(from)
	if err != nil {
		return err
	}
	return filepath.WalkDir(from, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		target := to + strings.TrimPrefix(path, from)
		if e.IsDir() {
			return errors.Join(os.Mkdir(target, 0o755), os.Chmod(target, 0o755))
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		return copyFile(path, target, info.Mode())
	})
}

// copyFile makes a file that everybody may read and its owner write.
func copyFile(from, to string, mode os.FileMode) (err error) {
	if !mode.IsRegular() {
		return fmt.Errorf("%s is neither a regular file nor a directory", from)
	}
	perm := os.FileMode(0o644)
	if mode&0o111 != 0 {
		perm = 0o755
	}
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }() // read only
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, perm)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Chmod(perm), out.Sync(), out.Close()) // whatever the umask is
}
