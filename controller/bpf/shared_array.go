// SPDX-License-Identifier: Apache-2.0

package bpf

import (
	"unsafe"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"
)

// sharedArray is an array map with BPF_F_MMAPABLE, in the memory of this
// process: reading and writing it takes no system call.
type sharedArray[T any] struct {
	memory   []byte
	elements []T
}

// mapArray maps the elements of an array, whose size must be T's and a multiple
// of 8, as the kernel rounds it up. The caller must unmap it.
func mapArray[T any](array *ebpf.Map) (sharedArray[T], error) {
	var zero T
	size := int(unsafe.Sizeof(zero))
	memory, err := unix.Mmap(array.FD(), 0, size*int(array.MaxEntries()), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return sharedArray[T]{}, err
	}
	elements := unsafe.Slice((*T)(unsafe.Pointer(&memory[0])), array.MaxEntries())
	return sharedArray[T]{memory: memory, elements: elements}, nil
}

// unmap must be the last that is done with the elements.
func (a *sharedArray[T]) unmap() error {
	if a.memory == nil {
		return nil
	}
	memory := a.memory
	a.memory, a.elements = nil, nil
	return unix.Munmap(memory)
}
