// SPDX-License-Identifier: Apache-2.0

package tracer

import (
	"encoding/binary"
	"os"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/internal/procid"
)

// There is a lifeline only where there is room for it, no handler is at work,
// and the C library has what is needed; else the thread is passed over once.
func TestLifelineNeedsRoom(t *testing.T) {
	const restorer = 0x123456789a
	ends := newComponentEnds()
	size := uint64(vectorsAt + ends.bytes(allComponents) + vectorEnd)
	memory := make([]byte, 4*maxXstate)
	start := uint64(uintptr(unsafe.Pointer(&memory[0])))
	pid := os.Getpid()
	process := mustOpen(t, pid)
	known := Gadget{Restorer: restorer, Returning: true}
	for _, row := range []struct {
		name    string
		gadget  Gadget
		pointer uint64 // from the start of the stack
		handler uint64 // where its frame begins, 0: none
		want    bool
	}{
		{"room", known, 2 * maxXstate, 0, true},
		{"just enough", known, size + redZone + alignment, 0, true},
		{"not enough", known, size + redZone + alignment - 1, 0, false},
		{"in a handler", known, 2 * maxXstate, 3 * maxXstate, false},
		{"a handler has been", known, 2 * maxXstate, maxXstate, true},
		{"no restorer is known", Gadget{Returning: true}, 2 * maxXstate, 0, false},
		{"no return behind the system call", Gadget{Restorer: restorer}, 2 * maxXstate, 0, false},
		{"on another stack", known, 5 * maxXstate, 0, false},
	} {
		clear(memory)
		if row.handler != 0 {
			binary.LittleEndian.PutUint64(memory[row.handler:], restorer)
		}
		b := NewBorrower(process, procid.Status{}, BorrowerOptions{Gadget: row.gadget})
		b.lifelines.stacks = stacks{threads: map[int]bool{pid: true}, main: Span{start, start + uint64(len(memory))}}
		s := NewSearch(b, SearchOptions{})
		regs := &unix.PtraceRegs{Rsp: start + row.pointer}
		at := b.lifelines.at(pid, regs, size)
		if (at != 0) != row.want || at%alignment != 0 || at != 0 && (at < start || at+size+redZone > regs.Rsp) {
			t.Errorf("%s: at %#x of stack %#x", row.name, at, start)
		}
		if first, again := s.passOver(pid, regs), s.passOver(pid, regs); again || !row.want && !first {
			t.Errorf("%s: passed over %v, then %v", row.name, first, again)
		}
	}
}
