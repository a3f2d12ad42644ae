// SPDX-License-Identifier: Apache-2.0

package objfile

import (
	"os"

	"golang.org/x/sys/unix"
)

// privileged says whether the kernel would start the file in secure mode when
// this process executes it. Ids that change nothing (a setuid program of the
// user's own) do not count, nor does anything on a mount with nosuid or under
// no_new_privs; capabilities of files are nothing new for root.
func privileged(file *os.File) Privileged {
	fd := int(file.Fd())
	var st unix.Stat_t
	if unix.Fstat(fd, &st) != nil || privilegesIgnored(fd) {
		return NotPrivileged
	}
	const groupExec = unix.S_IXGRP // setgid without it means mandatory locking
	switch {
	case st.Mode&unix.S_ISUID != 0 && int(st.Uid) != os.Getuid():
		return SetUID
	case st.Mode&(unix.S_ISGID|groupExec) == unix.S_ISGID|groupExec && int(st.Gid) != os.Getgid():
		return SetGID
	}
	if n, err := unix.Fgetxattr(fd, "security.capability", nil); err == nil && n > 0 && os.Getuid() != 0 {
		return FileCapabilities
	}
	return NotPrivileged
}

func privilegesIgnored(fd int) bool {
	var mount unix.Statfs_t
	if unix.Fstatfs(fd, &mount) == nil && mount.Flags&unix.ST_NOSUID != 0 {
		return true
	}
	set, err := unix.PrctlRetInt(unix.PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0)
	return err == nil && set == 1
}
