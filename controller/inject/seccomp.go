// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"encoding/binary"
	"fmt"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// need is a system call that a process makes because of us, with the arguments
// that a filter might judge.
type need struct {
	name      string
	number    uint32
	arguments [6]uint64
}

// callNeeds are the system calls of a thread that is borrowed.
var callNeeds = []need{
	{name: "mmap", number: unix.SYS_MMAP, arguments: [6]uint64{2: unix.PROT_READ | unix.PROT_EXEC, 3: unix.MAP_PRIVATE | unix.MAP_ANONYMOUS, 4: noDescriptor}},
	{name: "mprotect", number: unix.SYS_MPROTECT, arguments: [6]uint64{2: unix.PROT_READ | unix.PROT_WRITE}},
	{name: "munmap", number: unix.SYS_MUNMAP},
	{name: "getpid", number: unix.SYS_GETPID}, {name: "gettid", number: unix.SYS_GETTID},
	{name: "tgkill", number: unix.SYS_TGKILL, arguments: [6]uint64{2: uint64(unix.SIGURG)}},
	{name: "rt_sigreturn", number: unix.SYS_RT_SIGRETURN},
}

// attachNeeds are those of the thread that it starts, of dlopen and
// attune_dm_attach, and of DMLib afterwards. Those that libc does without where
// they are refused are not here (clone3, rseq).
var attachNeeds = []need{
	{name: "mmap", number: unix.SYS_MMAP, arguments: [6]uint64{2: unix.PROT_READ | unix.PROT_WRITE, 3: unix.MAP_SHARED, 4: 3}},
	{name: "mremap", number: unix.SYS_MREMAP},
	{name: "madvise", number: unix.SYS_MADVISE, arguments: [6]uint64{2: unix.MADV_WIPEONFORK}},
	{name: "rt_sigprocmask", number: unix.SYS_RT_SIGPROCMASK, arguments: [6]uint64{0: 2, 3: 8}},
	{name: "set_robust_list", number: unix.SYS_SET_ROBUST_LIST, arguments: [6]uint64{1: 24}},
	{name: "close_range", number: unix.SYS_CLOSE_RANGE, arguments: [6]uint64{1: 1<<32 - 1, 2: unix.CLOSE_RANGE_UNSHARE}},
	{name: "memfd_create", number: unix.SYS_MEMFD_CREATE, arguments: [6]uint64{1: unix.MFD_CLOEXEC | unix.MFD_ALLOW_SEALING}},
	{name: "ppoll", number: unix.SYS_PPOLL},
	{name: "openat", number: unix.SYS_OPENAT, arguments: [6]uint64{0: 1<<64 - 100, 2: unix.O_RDONLY | unix.O_CLOEXEC}},
	{name: "read", number: unix.SYS_READ}, {name: "close", number: unix.SYS_CLOSE},
	{name: "pread64", number: unix.SYS_PREAD64}, {name: "fstat", number: unix.SYS_FSTAT},
	{name: "fcntl", number: unix.SYS_FCNTL, arguments: [6]uint64{1: unix.F_GET_SEALS}},
	{name: "prctl", number: unix.SYS_PRCTL, arguments: [6]uint64{0: unix.PR_GET_SECCOMP}},
	{name: "futex", number: unix.SYS_FUTEX, arguments: [6]uint64{1: 128}},
	{name: "exit", number: unix.SYS_EXIT},
	{name: "process_vm_readv", number: unix.SYS_PROCESS_VM_READV},
}

const (
	noDescriptor = 1<<64 - 1
	auditX86     = 0xc000003e // AUDIT_ARCH_X86_64
)

// What a filter answers, in its upper 16 bits.
const (
	seccompAction = 0xffff0000
	seccompAllow  = 0x7fff0000
	seccompLog    = 0x7ffc0000
)

// record is struct seccomp_data as a filter reads it: words of 32 bits, of
// which the low one comes first. bpf.VM reads packets, in the order of the
// network.
func (n need) record() []byte {
	order := binary.BigEndian
	b := make([]byte, 64)
	order.PutUint32(b, n.number)
	order.PutUint32(b[4:], auditX86)
	for i, argument := range n.arguments {
		order.PutUint32(b[16+8*i:], uint32(argument))
		order.PutUint32(b[20+8*i:], uint32(argument>>32))
	}
	return b
}

// judge says which system call that we need a filter does not allow; "" if it
// allows them all.
func judge(filter []bpf.RawInstruction, needs []need) (refused string, err error) {
	program, ok := bpf.Disassemble(filter)
	if !ok {
		return "", fmt.Errorf("a filter of %d instructions is not understood", len(filter))
	}
	vm, err := bpf.NewVM(program)
	if err != nil {
		return "", fmt.Errorf("filter: %w", err)
	}
	for _, n := range needs {
		answer, err := vm.Run(n.record())
		if err != nil {
			return "", fmt.Errorf("filter: %w", err)
		}
		if action := uint32(answer) & seccompAction; action != seccompAllow && action != seccompLog {
			return n.name, nil
		}
	}
	return "", nil
}
