// SPDX-License-Identifier: Apache-2.0

// Package filecache keeps small pieces of data in a directory, a file each, so
// that they outlive the process. Whatever goes wrong costs finding them out
// again, and nothing more: callers may ignore every error.
package filecache

import (
	"errors"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/internal/outfile"
)

// Dir is the directory of a cache; the empty one keeps nothing. What is there is
// trusted as far as the directory is: it must belong to the user, and nobody
// else may write to it. It is safe for concurrent use by any number of
// processes.
type Dir string

// Get returns what is kept under a name, which has no slash in it; nil: nothing
// that could be read.
func (d Dir) Get(name string) []byte {
	if d == "" {
		return nil
	}
	content, err := os.ReadFile(filepath.Join(string(d), name))
	if err != nil {
		return nil
	}
	return content
}

// Put keeps something under a name, in place of what was there: complete or not
// at all. limit bounds how many files there may be.
func (d Dir) Put(name string, content []byte, limit int) error {
	if d == "" {
		return nil
	}
	if err := d.makeRoom(limit); err != nil {
		return err
	}
	return outfile.Put(filepath.Join(string(d), name), content, 0o600)
}

// makeRoom empties a directory that is full: rare, and what is in use comes
// back.
func (d Dir) makeRoom(limit int) error {
	entries, err := os.ReadDir(string(d))
	if err != nil || len(entries) < limit {
		return err
	}
	for _, entry := range entries {
		err := os.Remove(filepath.Join(string(d), entry.Name()))
		if err != nil && !errors.Is(err, unix.ENOENT) {
			return err
		}
	}
	return nil
}
