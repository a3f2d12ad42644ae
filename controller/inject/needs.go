// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/controller/inject/tracer"
)

const noDescriptor = 1<<64 - 1

// callNeeds are the system calls of a thread that is borrowed.
var callNeeds = []tracer.Need{
	{Name: "mmap", Number: unix.SYS_MMAP, Arguments: [6]uint64{2: unix.PROT_READ | unix.PROT_EXEC, 3: unix.MAP_PRIVATE | unix.MAP_ANONYMOUS, 4: noDescriptor}},
	{Name: "mprotect", Number: unix.SYS_MPROTECT, Arguments: [6]uint64{2: unix.PROT_READ | unix.PROT_WRITE}},
	{Name: "munmap", Number: unix.SYS_MUNMAP},
	{Name: "rt_sigprocmask", Number: unix.SYS_RT_SIGPROCMASK, Arguments: [6]uint64{0: 1, 3: 8}},
	{Name: "getpid", Number: unix.SYS_GETPID}, {Name: "gettid", Number: unix.SYS_GETTID},
	{Name: "tgkill", Number: unix.SYS_TGKILL, Arguments: [6]uint64{2: uint64(unix.SIGURG)}},
	{Name: "rt_sigreturn", Number: unix.SYS_RT_SIGRETURN},
}

// threadNeeds are those by which it starts a thread for the work, and by which this one
// begins. Where a filter stands against one, the borrowed thread does the work itself. So
// it does where libc is refused clone3 and clone by an error; but refused rseq, which other
// threads have, libc ends the program.
var threadNeeds = []tracer.Need{
	{Name: "clone3", Number: unix.SYS_CLONE3, Arguments: [6]uint64{1: 88}, MayFail: true},
	{Name: "clone", Number: unix.SYS_CLONE, Arguments: [6]uint64{0: threadFlags}, MayFail: true},
	{Name: "rseq", Number: unix.SYS_RSEQ, Arguments: [6]uint64{1: 32}},
}

// threadFlags are those of pthread_create(3) for clone(2).
const threadFlags = unix.CLONE_VM | unix.CLONE_FS | unix.CLONE_FILES | unix.CLONE_SYSVSEM | unix.CLONE_SIGHAND |
	unix.CLONE_THREAD | unix.CLONE_SETTLS | unix.CLONE_PARENT_SETTID | unix.CLONE_CHILD_CLEARTID

// attachNeeds are those of the thread that does the work, of dlopen and
// attune_dm_attach, and of DMLib afterwards.
var attachNeeds = []tracer.Need{
	{Name: "mmap", Number: unix.SYS_MMAP, Arguments: [6]uint64{2: unix.PROT_READ | unix.PROT_WRITE, 3: unix.MAP_SHARED, 4: 3}},
	{Name: "mremap", Number: unix.SYS_MREMAP},
	{Name: "madvise", Number: unix.SYS_MADVISE, Arguments: [6]uint64{2: unix.MADV_WIPEONFORK}},
	{Name: "rt_sigprocmask", Number: unix.SYS_RT_SIGPROCMASK, Arguments: [6]uint64{0: 2, 3: 8}},
	{Name: "set_robust_list", Number: unix.SYS_SET_ROBUST_LIST, Arguments: [6]uint64{1: 24}},
	{Name: "close_range", Number: unix.SYS_CLOSE_RANGE, Arguments: [6]uint64{1: 1<<32 - 1, 2: unix.CLOSE_RANGE_UNSHARE}},
	{Name: "memfd_create", Number: unix.SYS_MEMFD_CREATE, Arguments: [6]uint64{1: unix.MFD_CLOEXEC | unix.MFD_ALLOW_SEALING}},
	{Name: "clock_gettime", Number: unix.SYS_CLOCK_GETTIME, Arguments: [6]uint64{0: unix.CLOCK_MONOTONIC}},
	{Name: "ppoll", Number: unix.SYS_PPOLL},
	{Name: "openat", Number: unix.SYS_OPENAT, Arguments: [6]uint64{0: 1<<64 - 100, 2: unix.O_RDONLY | unix.O_CLOEXEC}},
	{Name: "read", Number: unix.SYS_READ}, {Name: "close", Number: unix.SYS_CLOSE},
	{Name: "pread64", Number: unix.SYS_PREAD64}, {Name: "fstat", Number: unix.SYS_FSTAT},
	{Name: "fcntl", Number: unix.SYS_FCNTL, Arguments: [6]uint64{1: unix.F_GET_SEALS}},
	{Name: "prctl", Number: unix.SYS_PRCTL, Arguments: [6]uint64{0: unix.PR_GET_SECCOMP}},
	{Name: "futex", Number: unix.SYS_FUTEX, Arguments: [6]uint64{1: 128}},
	{Name: "exit", Number: unix.SYS_EXIT},
	{Name: "process_vm_readv", Number: unix.SYS_PROCESS_VM_READV},
}
