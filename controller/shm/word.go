// SPDX-License-Identifier: Apache-2.0

package shm

import (
	"sync/atomic"
	"unsafe"
)

// u32 and u64 give the word at a byte offset of the mapping. Offsets come from
// layout.go and the controller's own geometry, never from the application, and
// every field is aligned to its size; the slice expression checks the bounds
// all the same.
func u32(b []byte, off int) *uint32 {
	return (*uint32)(unsafe.Pointer(&b[off : off+4 : off+4][0]))
}

func u64(b []byte, off int) *uint64 {
	return (*uint64)(unsafe.Pointer(&b[off : off+8 : off+8][0]))
}

// Go's atomics are sequentially consistent, which includes the acquire and
// release that the layout asks for.
func load32(b []byte, off int) uint32     { return atomic.LoadUint32(u32(b, off)) }
func load64(b []byte, off int) uint64     { return atomic.LoadUint64(u64(b, off)) }
func store32(b []byte, off int, v uint32) { atomic.StoreUint32(u32(b, off), v) }
func store64(b []byte, off int, v uint64) { atomic.StoreUint64(u64(b, off), v) }
func or32(b []byte, off int, v uint32)    { atomic.OrUint32(u32(b, off), v) }
func and32(b []byte, off int, v uint32)   { atomic.AndUint32(u32(b, off), v) }

func cas32(b []byte, off int, from, to uint32) bool {
	return atomic.CompareAndSwapUint32(u32(b, off), from, to)
}

func cas64(b []byte, off int, from, to uint64) bool {
	return atomic.CompareAndSwapUint64(u64(b, off), from, to)
}

// words views aligned bytes as 8-byte words, for the copying loops.
func words(b []byte) []uint64 {
	if len(b) < 8 {
		return nil
	}
	return unsafe.Slice((*uint64)(unsafe.Pointer(unsafe.SliceData(b))), len(b)/8)
}

// bytesOf views words as bytes. Little endian, like every machine DMLib is
// built for.
func bytesOf(w []uint64) []byte {
	if len(w) == 0 {
		return nil
	}
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(w))), len(w)*8)
}
