// SPDX-License-Identifier: Apache-2.0

package bpf

import (
	"unsafe"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"
)

// SharedArray is an array map with BPF_F_MMAPABLE, in the memory of this
// process: reading and writing it takes no system call.
type SharedArray[T any] struct {
	memory   []byte
	Elements []T
}

// MapArray maps the elements of an array, whose size must be T's and a multiple
// of 8, as the kernel rounds it up. The caller must unmap it.
func MapArray[T any](array *ebpf.Map) (SharedArray[T], error) {
	var zero T
	size := int(unsafe.Sizeof(zero))
	memory, err := unix.Mmap(array.FD(), 0, size*int(array.MaxEntries()), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return SharedArray[T]{}, err
	}
	elements := unsafe.Slice((*T)(unsafe.Pointer(&memory[0])), array.MaxEntries())
	return SharedArray[T]{memory: memory, Elements: elements}, nil
}

// Unmap must be the last that is done with the elements.
func (a *SharedArray[T]) Unmap() error {
	if a.memory == nil {
		return nil
	}
	memory := a.memory
	a.memory, a.Elements = nil, nil
	return unix.Munmap(memory)
}
