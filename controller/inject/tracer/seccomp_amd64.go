// SPDX-License-Identifier: Apache-2.0

package tracer

import (
	"encoding/binary"
	"errors"
	"fmt"
	"unsafe"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// Need is a system call that a process makes because of us, with the arguments
// that a filter might judge.
type Need struct {
	Name      string
	Number    uint32
	Arguments [6]uint64
	// MayFail says that a filter may answer with an error, which is dealt with.
	MayFail bool
}

const auditX86 = 0xc000003e // AUDIT_ARCH_X86_64

// maxFilters bounds how many filters one thread is thought to have.
const maxFilters = 256

// What a filter answers, in its upper 16 bits.
const (
	seccompAction = 0xffff0000
	seccompAllow  = 0x7fff0000
	seccompLog    = 0x7ffc0000
	seccompErrno  = 0x00050000
)

// allows says whether a filter's answer does.
func (n Need) allows(answer uint32) bool {
	switch answer & seccompAction {
	case seccompAllow, seccompLog:
		return true
	case seccompErrno:
		return n.MayFail
	}
	return false
}

// record is struct seccomp_data as a filter reads it: words of 32 bits, of
// which the low one comes first. bpf.VM reads packets, in the order of the
// network.
func (n Need) record() []byte {
	order := binary.BigEndian
	b := make([]byte, 64)
	order.PutUint32(b, n.Number)
	order.PutUint32(b[4:], auditX86)
	for i, argument := range n.Arguments {
		order.PutUint32(b[16+8*i:], uint32(argument))
		order.PutUint32(b[20+8*i:], uint32(argument>>32))
	}
	return b
}

// judge says which system call that we need a filter does not allow; "" if it
// allows them all.
func judge(filter []bpf.RawInstruction, needs []Need) (refused string, err error) {
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
		if !n.allows(uint32(answer)) {
			return n.Name, nil
		}
	}
	return "", nil
}

// filtered says which filter of a thread, which stands, is against us, if any.
func (t *Thread) filtered(needs []Need) error {
	for i := range uintptr(maxFilters) {
		filter, err := t.filter(i)
		switch {
		case errors.Is(err, unix.ENOENT): // there are no more
			return nil
		case errors.Is(err, unix.EACCES), errors.Is(err, unix.EPERM):
			return fmt.Errorf("%w: it has a seccomp filter, which may kill it for system calls of ours; only root can look, and only under no filter itself: attach to it with attune as root", ErrUnsuited)
		case err != nil:
			return fmt.Errorf("%w: its seccomp filter cannot be read: %w", ErrUnsuited, err)
		}
		refused, err := judge(filter, needs)
		if err != nil {
			return fmt.Errorf("%w: seccomp: %w", ErrUnsuited, err)
		}
		if refused != "" {
			return fmt.Errorf("%w: its seccomp filter does not let it call %s", ErrUnsuited, refused)
		}
	}
	return fmt.Errorf("%w: it has more than %d seccomp filters", ErrUnsuited, maxFilters)
}

// filter reads one filter of the thread.
func (t *Thread) filter(index uintptr) ([]bpf.RawInstruction, error) {
	n, _, errno := unix.Syscall6(unix.SYS_PTRACE, ptraceSeccompGetFilter, uintptr(t.ID), index, 0, 0, 0)
	if errno != 0 {
		return nil, errno
	}
	// struct sock_filter has the layout of bpf.RawInstruction.
	filter := make([]bpf.RawInstruction, n)
	_, _, errno = unix.Syscall6(unix.SYS_PTRACE, ptraceSeccompGetFilter, uintptr(t.ID), index, uintptr(unsafe.Pointer(unsafe.SliceData(filter))), 0, 0)
	if errno != 0 {
		return nil, errno
	}
	return filter, nil
}
