// SPDX-License-Identifier: Apache-2.0

package actuate

import (
	"encoding/binary"

	"golang.org/x/sys/unix"
)

// assembler puts instructions behind one another.
type assembler []byte

func (a *assembler) emit(code ...byte) { *a = append(*a, code...) }

func (a *assembler) number64(value uint64, code ...byte) {
	*a = binary.LittleEndian.AppendUint64(append(*a, code...), value)
}

func (a *assembler) number32(value uint32, code ...byte) {
	*a = binary.LittleEndian.AppendUint32(append(*a, code...), value)
}

// mapCode maps memory that is readable and executable, where nothing is mapped,
// and returns what mmap(2) does.
func mapCode(start, size uint64) []byte {
	var a assembler
	a.number64(start, 0x48, 0xbf)                                                        // rdi
	a.number64(size, 0x48, 0xbe)                                                         // rsi
	a.number32(unix.PROT_READ|unix.PROT_EXEC, 0xba)                                      // edx
	a.number32(unix.MAP_PRIVATE|unix.MAP_ANONYMOUS|unix.MAP_FIXED_NOREPLACE, 0x41, 0xba) // r10d
	a.emit(0x49, 0xc7, 0xc0, 0xff, 0xff, 0xff, 0xff)                                     // r8 = -1
	a.emit(0x45, 0x31, 0xc9)                                                             // r9 = 0
	a.number32(unix.SYS_MMAP, 0xb8)                                                      // eax
	a.emit(0x0f, 0x05, 0xc3)                                                             // syscall; ret
	return a
}

// exchangeCode stores a word of 8 bytes where another one is, in one go, and
// returns what was there.
func exchangeCode(w Word, from, to []byte) []byte {
	var a assembler
	if w.ReadOnly {
		a.protect(w.Address, unix.PROT_READ|unix.PROT_WRITE)
	}
	a.number64(w.Address, 0x48, 0xbf)                        // rdi
	a.number64(binary.LittleEndian.Uint64(from), 0x48, 0xb8) // rax
	a.number64(binary.LittleEndian.Uint64(to), 0x48, 0xba)   // rdx
	a.emit(0xf0, 0x48, 0x0f, 0xb1, 0x17)                     // lock cmpxchg [rdi],rdx
	a.emit(0x49, 0x89, 0xc0)                                 // r8 = rax
	if w.ReadOnly {
		a.protect(w.Address, unix.PROT_READ)
	}
	a.emit(0x4c, 0x89, 0xc0, 0xc3) // rax = r8; ret
	return a
}

// protect calls mprotect(2) for the page of an address.
func (a *assembler) protect(address uint64, access uint32) {
	a.number64(address&^(pageBytes-1), 0x48, 0xbf) // rdi
	a.number32(pageBytes, 0xbe)                    // esi
	a.number32(access, 0xba)                       // edx
	a.number32(unix.SYS_MPROTECT, 0xb8)            // eax
	a.emit(0x0f, 0x05)
}
