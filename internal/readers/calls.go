// SPDX-License-Identifier: Apache-2.0

package readers

import (
	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/internal/confine"
)

// filter is what a helper of that id may ask of the kernel: what reading takes, and Go's
// runtime. All else is answered as by a kernel that has no such call, which sends a
// later runtime another way. What only somebody would call who has taken the helper over
// ends it.
func filter(pid int) *confine.Filter {
	f := &confine.Filter{Calls: make(map[uint32][]confine.Case), Others: confine.Lack}
	f.Set(confine.Allow, reading()...)
	f.Set(confine.Allow, runtimeCalls()...)
	f.Set(confine.Kill, forbidden()...)
	const writes = unix.O_ACCMODE | unix.O_CREAT | unix.O_TRUNC | unix.O_APPEND | unix.O_TMPFILE&^unix.O_DIRECTORY
	f.Calls[unix.SYS_OPENAT] = allowIf(confine.Without(2, writes))
	noCode := allowIf(confine.Without(2, unix.PROT_EXEC))
	f.Calls[unix.SYS_MMAP], f.Calls[unix.SYS_MPROTECT] = noCode, noCode
	// A thread ends with this process. clone3 has its flags in memory, as openat2 has: both lack.
	f.Calls[unix.SYS_CLONE] = append(allowIf(confine.Having(0, unix.CLONE_THREAD)), confine.Case{Verdict: confine.Kill})
	// Go's runtime signals its own threads only.
	f.Calls[unix.SYS_TGKILL] = allowIf(confine.Is(0, uint32(pid)))
	f.Calls[unix.SYS_KILL] = allowIf(confine.Is(0, uint32(pid)))
	f.Calls[unix.SYS_PRCTL] = append(allowIf(confine.Is(0, unix.PR_SET_VMA)), // the runtime names memory
		allowIf(confine.Is(0, unix.PR_GET_NO_NEW_PRIVS))...) // whether setuid counts: package objfile
	return f
}

func allowIf(where confine.Argument) []confine.Case {
	return []confine.Case{{Where: []confine.Argument{where}, Verdict: confine.Allow}}
}

// reading are the calls by which the operations read.
func reading() []uint32 {
	return []uint32{
		unix.SYS_READ, unix.SYS_PREAD64, unix.SYS_WRITE, unix.SYS_CLOSE, unix.SYS_LSEEK, unix.SYS_FCNTL,
		unix.SYS_FSTAT, unix.SYS_NEWFSTATAT, unix.SYS_STATX, unix.SYS_FSTATFS, unix.SYS_STATFS, unix.SYS_FGETXATTR, unix.SYS_GETXATTR,
		unix.SYS_READLINKAT, unix.SYS_GETDENTS64, unix.SYS_FACCESSAT, unix.SYS_FACCESSAT2, unix.SYS_FADVISE64,
		unix.SYS_GETPID, unix.SYS_GETUID, unix.SYS_GETEUID, unix.SYS_GETGID, unix.SYS_GETEGID, unix.SYS_UNAME,
	}
}

// runtimeCalls are those of Go's runtime, of the version that builds this program, and of
// the C library's threads where the program has it.
func runtimeCalls() []uint32 {
	return []uint32{
		unix.SYS_MUNMAP, unix.SYS_MADVISE, unix.SYS_MINCORE, unix.SYS_BRK, unix.SYS_MREMAP,
		unix.SYS_FUTEX, unix.SYS_SCHED_YIELD, unix.SYS_SCHED_GETAFFINITY, unix.SYS_GETTID, unix.SYS_GETRUSAGE,
		unix.SYS_NANOSLEEP, unix.SYS_CLOCK_NANOSLEEP, unix.SYS_CLOCK_GETTIME, unix.SYS_CLOCK_GETRES, unix.SYS_GETTIMEOFDAY,
		unix.SYS_SETITIMER, unix.SYS_TIMER_CREATE, unix.SYS_TIMER_SETTIME, unix.SYS_TIMER_DELETE,
		unix.SYS_RT_SIGACTION, unix.SYS_RT_SIGPROCMASK, unix.SYS_RT_SIGRETURN, unix.SYS_SIGALTSTACK, unix.SYS_RESTART_SYSCALL,
		unix.SYS_EPOLL_CREATE1, unix.SYS_EPOLL_CTL, unix.SYS_EPOLL_PWAIT, unix.SYS_EPOLL_PWAIT2, unix.SYS_EVENTFD2, unix.SYS_PIPE2,
		unix.SYS_GETRANDOM, unix.SYS_ARCH_PRCTL, unix.SYS_SET_ROBUST_LIST, unix.SYS_RSEQ,
		unix.SYS_EXIT, unix.SYS_EXIT_GROUP,
	}
}

// forbidden are calls that no reader makes.
func forbidden() []uint32 {
	return []uint32{
		unix.SYS_EXECVE, unix.SYS_EXECVEAT, unix.SYS_FORK, unix.SYS_VFORK,
		unix.SYS_PTRACE, unix.SYS_PROCESS_VM_WRITEV, unix.SYS_PIDFD_GETFD, unix.SYS_PIDFD_SEND_SIGNAL,
		unix.SYS_BPF, unix.SYS_PERF_EVENT_OPEN, unix.SYS_USERFAULTFD,
		unix.SYS_SOCKET, unix.SYS_SOCKETPAIR, unix.SYS_CONNECT, unix.SYS_BIND, unix.SYS_LISTEN,
		unix.SYS_IO_URING_SETUP, unix.SYS_IO_URING_ENTER, unix.SYS_IO_URING_REGISTER,
		unix.SYS_MOUNT, unix.SYS_UMOUNT2, unix.SYS_PIVOT_ROOT, unix.SYS_CHROOT, unix.SYS_OPEN_TREE, unix.SYS_MOVE_MOUNT,
		unix.SYS_FSOPEN, unix.SYS_FSCONFIG, unix.SYS_FSMOUNT, unix.SYS_FSPICK, unix.SYS_MOUNT_SETATTR, unix.SYS_OPEN_TREE_ATTR,
		unix.SYS_SETNS, unix.SYS_UNSHARE, unix.SYS_OPEN_BY_HANDLE_AT,
		unix.SYS_INIT_MODULE, unix.SYS_FINIT_MODULE, unix.SYS_DELETE_MODULE, unix.SYS_KEXEC_LOAD, unix.SYS_KEXEC_FILE_LOAD,
		unix.SYS_KEYCTL, unix.SYS_ADD_KEY, unix.SYS_REQUEST_KEY,
		unix.SYS_SETUID, unix.SYS_SETGID, unix.SYS_SETREUID, unix.SYS_SETREGID, unix.SYS_SETRESUID, unix.SYS_SETRESGID,
		unix.SYS_SETFSUID, unix.SYS_SETFSGID, unix.SYS_SETGROUPS, unix.SYS_CAPSET,
		unix.SYS_REBOOT, unix.SYS_SWAPON, unix.SYS_SWAPOFF, unix.SYS_IOPL, unix.SYS_IOPERM, unix.SYS_MODIFY_LDT,
	}
}
