// SPDX-License-Identifier: Apache-2.0

package rundir

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/internal/procid"
)

// library is how DMLib's name begins where it lies in a directory of a run.
const library = "libattune-dm"

// remove removes a directory of a run with all that is in it, and the one above if it is
// empty then: nothing is to be left of a run in /tmp. Where the environment of
// a process leads to the library in it, that stays, with the lock: the loader would
// complain in whatever the process starts. The lock goes last, so that a later run
// tries again where this one is killed meanwhile.
func remove(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return removeAll(dir)
	}
	isLibrary := func(entry os.DirEntry) bool { return strings.HasPrefix(entry.Name(), library) }
	needed := slices.ContainsFunc(entries, isLibrary) && preloaded(dir)
	for _, entry := range entries {
		if entry.Name() != lockName && (!needed || !isLibrary(entry)) {
			err = errors.Join(err, os.RemoveAll(filepath.Join(dir, entry.Name())))
		}
	}
	if needed || err != nil {
		return err
	}
	return removeAll(dir)
}

// removals is how often a directory is emptied in which something is being made
// meanwhile, such as the socket of a gate that opens while its run ends.
const removals = 100

func removeAll(dir string) (err error) {
	for range removals {
		if err = os.RemoveAll(dir); !errors.Is(err, unix.ENOTEMPTY) {
			break
		}
	}
	_ = os.Remove(filepath.Dir(dir)) // it is another run's, too
	return err
}

// preloaded says whether the environment of a process, as far as it can be read,
// has something of a directory in LD_PRELOAD.
func preloaded(dir string) bool {
	pids, err := procid.List()
	if err != nil {
		return false
	}
	for _, pid := range pids {
		variables, err := procid.Environ(pid)
		if err != nil {
			continue // it has ended, or is not ours
		}
		for _, variable := range variables {
			value, ok := bytes.CutPrefix(variable, []byte("LD_PRELOAD="))
			if ok && bytes.Contains(value, []byte(dir+"/"+library)) {
				return true
			}
		}
	}
	return false
}
