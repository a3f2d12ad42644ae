// SPDX-License-Identifier: Apache-2.0

package threadlocal

import (
	"encoding/binary"
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/internal/proc"
	"github.com/attune-hpc/attune/internal/procid"
)

// maxDescriptor is more than any glibc's struct pthread has before the list of
// robust futexes.
const maxDescriptor = 4096

// selfOffsets are where a descriptor points at itself: tcb and self of
// tcbhead_t, which the x86-64 ABI of thread-local storage fixes.
var selfOffsets = []int{0, 16}

// descriptor finds a thread's descriptor, which is where its thread pointer
// leads.
func (b *Block) descriptor(tid int) (uint64, error) {
	list, err := robustList(tid)
	if err != nil {
		return 0, err
	}
	inner, err := procid.InnerID(b.process.PID(), tid)
	if err != nil {
		return 0, err
	}
	start := max(list, maxDescriptor) - maxDescriptor
	content := make([]byte, list-start)
	for b.process.Read(start, content) != nil { // from where memory begins
		start = (start | 0xfff) + 1
		if start >= list {
			return 0, fmt.Errorf("%w: descriptor of thread %d", ErrUnsupported, tid)
		}
		content = content[:list-start]
	}
	for at := (len(content) - 24) &^ 7; at >= 0; at -= 8 {
		if b.describes(content[at:], start+uint64(at), inner) {
			return start + uint64(at), nil
		}
	}
	return 0, fmt.Errorf("%w: descriptor of thread %d", ErrUnsupported, tid)
}

// describes says whether a descriptor of the thread begins at an address.
func (b *Block) describes(content []byte, address uint64, tid int) bool {
	for _, offset := range selfOffsets {
		if binary.LittleEndian.Uint64(content[offset:]) != address {
			return false
		}
	}
	return uint64(len(content)) >= b.layout.tid+4 &&
		int(binary.LittleEndian.Uint32(content[b.layout.tid:])) == tid
}

// robustList asks the kernel for the head of a thread's list.
func robustList(tid int) (uint64, error) {
	var head, length uint64
	_, _, errno := unix.Syscall(unix.SYS_GET_ROBUST_LIST, uintptr(tid),
		uintptr(unsafe.Pointer(&head)), uintptr(unsafe.Pointer(&length)))
	switch {
	case errno == unix.EPERM:
		return 0, proc.ErrPermission
	case errno != 0:
		return 0, fmt.Errorf("thread %d: %w", tid, procid.GoneError(errno))
	case head == 0:
		return 0, fmt.Errorf("%w: thread %d is none of glibc's", ErrUnsupported, tid)
	}
	return head, nil
}
