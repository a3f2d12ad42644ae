// SPDX-License-Identifier: Apache-2.0

package rundir

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// Running lists the directories of the user's runs whose process lives, as
// [Dir.Path] has them, in no particular order.
func Running(u User) []string {
	var found []string
	for _, base := range u.runtimeBases() {
		entries, err := os.ReadDir(base)
		if err != nil {
			continue // most bases do not exist
		}
		for _, entry := range entries {
			path := filepath.Join(base, entry.Name())
			if strings.HasPrefix(entry.Name(), prefix) && locked(path) && !slices.Contains(found, path) {
				found = append(found, path)
			}
		}
	}
	return found
}

// SocketIn returns the path of a socket in the directory of a run, as
// [Dir.Socket] does for one's own.
func SocketIn(dir, name string) string { return filepath.Join(dir, name+".sock") }

// locked says whether somebody holds the lock of a run directory. A lock of our
// own, for a moment, makes nobody take the directory for a dead one's: that
// takes the lock for itself alone.
func locked(dir string) bool {
	f, err := os.OpenFile(filepath.Join(dir, lockName), os.O_RDONLY, 0)
	if err != nil {
		return false
	}
	defer func() { _ = f.Close() }() // gives the lock back
	return unix.Flock(int(f.Fd()), unix.LOCK_SH|unix.LOCK_NB) == unix.EWOULDBLOCK
}
