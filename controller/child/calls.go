// SPDX-License-Identifier: Apache-2.0

package child

import (
	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/internal/confine"
)

// filter is what the process of a session, with what it executes, may not ask of the
// kernel. What a controller needs is much, and some of it seldom: a list of that would be
// found wanting on some node. What it does not need is refused, and what nothing needs that
// it executes, whatever library the prober loads, ends the process.
func filter() *confine.Filter {
	f := &confine.Filter{Calls: make(map[uint32][]confine.Case), Others: confine.Allow}
	f.Set(confine.Refuse, needless()...)
	f.Set(confine.Kill, forbidden()...)
	// What has its arguments in memory, or other ways to do it: callers take those.
	f.Set(confine.Lack, unix.SYS_CLONE3, unix.SYS_IO_URING_SETUP, unix.SYS_IO_URING_ENTER, unix.SYS_IO_URING_REGISTER)
	f.Calls[unix.SYS_CLONE] = allow(confine.Without(0, namespaces))
	// To attuned, and at the gate; the kernel's tables of sockets.
	f.Calls[unix.SYS_SOCKET] = append(allow(confine.Is(0, unix.AF_UNIX)),
		allow(confine.Is(0, unix.AF_NETLINK), confine.Is(2, unix.NETLINK_SOCK_DIAG))...)
	// Readers and the prober are nobody's, or the prober root's.
	f.Calls[unix.SYS_SETUID] = append(allow(confine.Is(0, 0)), allow(confine.Is(0, confine.Nobody))...)
	f.Calls[unix.SYS_SETGROUPS] = allow(confine.Is(0, 0))
	// Code comes from files only.
	f.Calls[unix.SYS_MMAP] = append(allow(confine.Without(2, unix.PROT_EXEC)), allow(confine.Without(2, unix.PROT_WRITE))...)
	f.Calls[unix.SYS_MPROTECT] = allow(confine.Without(2, unix.PROT_EXEC))
	f.Calls[unix.SYS_PKEY_MPROTECT] = allow(confine.Without(2, unix.PROT_EXEC))
	return f
}

func allow(where ...confine.Argument) []confine.Case {
	return []confine.Case{{Where: where, Verdict: confine.Allow}}
}

// namespaces are the flags of clone(2) that make one.
const namespaces = unix.CLONE_NEWNS | unix.CLONE_NEWUSER | unix.CLONE_NEWPID | unix.CLONE_NEWNET | unix.CLONE_NEWIPC |
	unix.CLONE_NEWUTS | unix.CLONE_NEWCGROUP

// needless are calls that neither a controller makes nor, of need, what it executes.
func needless() []uint32 {
	return []uint32{
		unix.SYS_UNSHARE, unix.SYS_SETNS, unix.SYS_CHROOT, unix.SYS_OPEN_BY_HANDLE_AT,
		unix.SYS_KEYCTL, unix.SYS_ADD_KEY, unix.SYS_REQUEST_KEY,
		unix.SYS_USERFAULTFD, unix.SYS_FANOTIFY_INIT, unix.SYS_PROCESS_VM_WRITEV, unix.SYS_EXECVEAT,
		unix.SYS_SETREUID, unix.SYS_SETREGID, unix.SYS_SETRESUID, unix.SYS_SETRESGID, unix.SYS_SETFSUID, unix.SYS_SETFSGID,
		unix.SYS_PERSONALITY, unix.SYS_MODIFY_LDT, unix.SYS_SYSLOG, unix.SYS_QUOTACTL, unix.SYS_QUOTACTL_FD, unix.SYS_ACCT,
		unix.SYS_MKNOD, unix.SYS_MKNODAT, unix.SYS_VHANGUP,
		unix.SYS_SETTIMEOFDAY, unix.SYS_CLOCK_SETTIME, unix.SYS_CLOCK_ADJTIME, unix.SYS_ADJTIMEX,
		unix.SYS_SETHOSTNAME, unix.SYS_SETDOMAINNAME,
	}
}

// forbidden are calls that change the machine.
func forbidden() []uint32 {
	return []uint32{
		unix.SYS_MOUNT, unix.SYS_UMOUNT2, unix.SYS_PIVOT_ROOT, unix.SYS_OPEN_TREE, unix.SYS_MOVE_MOUNT,
		unix.SYS_FSOPEN, unix.SYS_FSCONFIG, unix.SYS_FSMOUNT, unix.SYS_FSPICK, unix.SYS_MOUNT_SETATTR, unix.SYS_OPEN_TREE_ATTR,
		unix.SYS_INIT_MODULE, unix.SYS_FINIT_MODULE, unix.SYS_DELETE_MODULE, unix.SYS_KEXEC_LOAD, unix.SYS_KEXEC_FILE_LOAD,
		unix.SYS_REBOOT, unix.SYS_SWAPON, unix.SYS_SWAPOFF, unix.SYS_IOPL, unix.SYS_IOPERM,
	}
}
