// SPDX-License-Identifier: Apache-2.0

//go:build amd64

package inject

import (
	"encoding/binary"
	"os"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// There is a lifeline only where there is room for it, no handler is at work,
// and the C library has what is needed; else the thread is passed over once.
func TestLifelineNeedsRoom(t *testing.T) {
	const restorer = 0x123456789a
	const size = 3 << 10
	memory := make([]byte, 16<<10)
	start := uint64(uintptr(unsafe.Pointer(&memory[0])))
	pid := os.Getpid()
	known := ground{restorer: restorer, returning: true}
	for _, row := range []struct {
		name    string
		ground  ground
		pointer uint64 // from the start of the stack
		handler uint64 // where its frame begins, 0: none
		want    bool
	}{
		{"room", known, 8 << 10, 0, true},
		{"just enough", known, size + redZone + alignment, 0, true},
		{"not enough", known, size + redZone + alignment - 1, 0, false},
		{"in a handler", known, 8 << 10, 9 << 10, false},
		{"a handler has been", known, 8 << 10, 7 << 10, true},
		{"no restorer is known", ground{returning: true}, 8 << 10, 0, false},
		{"no return behind the system call", ground{restorer: restorer}, 8 << 10, 0, false},
		{"on another stack", known, 17 << 10, 0, false},
	} {
		clear(memory)
		if row.handler != 0 {
			binary.LittleEndian.PutUint64(memory[row.handler:], restorer)
		}
		p := &plan{process: mustOpen(t, pid), pid: pid, ground: row.ground, passed: make(map[int]bool)}
		p.stacks = stacks{threads: map[int]bool{pid: true}, main: span{start, start + uint64(len(memory))}}
		regs := &unix.PtraceRegs{Rsp: start + row.pointer}
		at := p.lifelineAt(pid, regs, size)
		if (at != 0) != row.want || at%alignment != 0 || at != 0 && (at < start || at+size+redZone > regs.Rsp) {
			t.Errorf("%s: at %#x of stack %#x", row.name, at, start)
		}
		if first, again := p.passOver(pid, regs), p.passOver(pid, regs); again || !row.want && !first {
			t.Errorf("%s: passed over %v, then %v", row.name, first, again)
		}
	}
}
