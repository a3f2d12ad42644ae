// SPDX-License-Identifier: Apache-2.0

package procid

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// InRoot takes hold, by O_PATH, of the file that an absolute path leads a process to. Links
// that are absolute lead on in the root directory of the process, not in ours, as they would
// in /proc/PID/root/PATH. resolve is of openat2(2), beside RESOLVE_IN_ROOT. The caller closes
// the descriptor.
func InRoot(pid int, path string, resolve uint64) (fd int, err error) {
	root, err := unix.Open(Path(pid, "root"), unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, fmt.Errorf("its root directory: %w", err)
	}
	defer unix.Close(root)
	return unix.Openat2(root, path, &unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: unix.RESOLVE_IN_ROOT | resolve})
}

// StatInRoot returns the status of that file.
func StatInRoot(pid int, path string) (st unix.Stat_t, err error) {
	fd, err := InRoot(pid, path, 0)
	if err != nil {
		return st, err
	}
	defer unix.Close(fd)
	err = unix.Fstat(fd, &st)
	return st, err
}
