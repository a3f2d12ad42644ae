// SPDX-License-Identifier: Apache-2.0

package objfile

import (
	"os"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/internal/procid"
)

// starter is who starts a program: whether that gains anything depends on it.
type starter struct {
	uid, gid        uint32 // the real ones
	noNewPrivileges bool
}

// thisProcess is this process as a starter.
func thisProcess() starter {
	set, err := unix.PrctlRetInt(unix.PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0)
	return starter{uint32(os.Getuid()), uint32(os.Getgid()), err == nil && set == 1}
}

// starterOf is who has started the program of another process, which keeps the real ids.
func starterOf(pid int) (starter, error) {
	status, err := procid.ReadStatus(pid)
	return starter{status.Users.Real, status.Groups.Real, status.NoNewPrivileges}, err
}

// privileged says whether the kernel would start the file in secure mode when
// the starter executes it. Ids that change nothing (a setuid program of the
// user's own) do not count, nor does anything on a mount with nosuid or under
// no_new_privs; capabilities of files are nothing new for root.
func (s starter) privileged(file *os.File) Privileged {
	fd := int(file.Fd())
	var st unix.Stat_t
	if s.noNewPrivileges || unix.Fstat(fd, &st) != nil || withoutSetuid(fd) {
		return NotPrivileged
	}
	const groupExec = unix.S_IXGRP // setgid without it means mandatory locking
	switch {
	case st.Mode&unix.S_ISUID != 0 && st.Uid != s.uid:
		return SetUID
	case st.Mode&(unix.S_ISGID|groupExec) == unix.S_ISGID|groupExec && st.Gid != s.gid:
		return SetGID
	}
	if n, err := unix.Fgetxattr(fd, "security.capability", nil); err == nil && n > 0 && s.uid != 0 {
		return FileCapabilities
	}
	return NotPrivileged
}

// withoutSetuid says whether the file is on a mount with nosuid.
func withoutSetuid(fd int) bool {
	var mount unix.Statfs_t
	return unix.Fstatfs(fd, &mount) == nil && mount.Flags&unix.ST_NOSUID != 0
}
