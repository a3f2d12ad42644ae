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
func Running(u User) []string { return runningIn(u.ownBases()) }

// RunningOfOthers lists the same of all other users, by their ids, where they
// usually are: a TMPDIR of somebody else is not known. What is in there is in
// the hands of that user, who may have written anything.
func RunningOfOthers(u User) map[int][]string {
	return runningOfOthers(u.UID, "/run/user/*/attune", "/tmp/attune-*", "/dev/shm/attune-*")
}

func runningOfOthers(uid int, patterns ...string) map[int][]string {
	found := make(map[int][]string)
	for _, pattern := range patterns {
		bases, err := filepath.Glob(pattern)
		if err != nil {
			continue // cannot happen: the patterns are good
		}
		for _, base := range bases {
			var st unix.Stat_t
			if unix.Lstat(base, &st) != nil || st.Mode&unix.S_IFMT != unix.S_IFDIR || int(st.Uid) == uid {
				continue
			}
			if runs := runningIn([]string{base}); len(runs) > 0 {
				found[int(st.Uid)] = append(found[int(st.Uid)], runs...)
			}
		}
	}
	return found
}

func runningIn(bases []string) []string {
	var found []string
	for _, base := range bases {
		entries, err := os.ReadDir(base)
		if err != nil {
			continue // another run has removed it, or it is closed to us
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
	// Another user may have put a pipe or a link there.
	f, err := os.OpenFile(filepath.Join(dir, lockName), os.O_RDONLY|unix.O_NONBLOCK|unix.O_NOFOLLOW, 0)
	if err != nil {
		return false
	}
	defer func() { _ = f.Close() }() // gives the lock back
	return unix.Flock(int(f.Fd()), unix.LOCK_SH|unix.LOCK_NB) == unix.EWOULDBLOCK
}
