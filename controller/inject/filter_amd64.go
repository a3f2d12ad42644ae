// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"errors"
	"fmt"
	"slices"
	"unsafe"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

const (
	ptraceSeccompGetFilter = 0x420c
	// maxFilters bounds how many filters one thread is thought to have.
	maxFilters = 256
)

// permitted says whether the thread, which is stopped, may make the system
// calls that it would have to. The answer holds until it gets another filter,
// which no thread loses again.
func (p *plan) permitted(t tracee) bool {
	if p.status.Seccomp == 0 {
		return true
	}
	if _, known := p.filters[t.tid]; !known {
		needs := callNeeds
		if p.code == nil {
			needs = slices.Concat(needs, attachNeeds)
		}
		p.filters[t.tid] = t.filtered(needs)
	}
	return p.filters[t.tid] == nil
}

// filtered says which filter of the stopped thread stands against us, if any.
func (t tracee) filtered(needs []need) error {
	for i := range uintptr(maxFilters) {
		filter, err := t.filter(i)
		switch {
		case errors.Is(err, unix.ENOENT): // there are no more
			return nil
		case errors.Is(err, unix.EACCES), errors.Is(err, unix.EPERM):
			return fmt.Errorf("%w: it has a seccomp filter, which may kill it for system calls of ours; only root can look: run attune as root", ErrUnsuited)
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
func (t tracee) filter(index uintptr) ([]bpf.RawInstruction, error) {
	n, _, errno := unix.Syscall6(unix.SYS_PTRACE, ptraceSeccompGetFilter, uintptr(t.tid), index, 0, 0, 0)
	if errno != 0 {
		return nil, errno
	}
	// struct sock_filter has the layout of bpf.RawInstruction.
	filter := make([]bpf.RawInstruction, n)
	_, _, errno = unix.Syscall6(unix.SYS_PTRACE, ptraceSeccompGetFilter, uintptr(t.tid), index, uintptr(unsafe.Pointer(unsafe.SliceData(filter))), 0, 0)
	if errno != 0 {
		return nil, errno
	}
	return filter, nil
}
