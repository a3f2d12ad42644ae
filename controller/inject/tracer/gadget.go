// SPDX-License-Identifier: Apache-2.0

package tracer

import (
	"bytes"
	"errors"

	"github.com/attune-hpc/attune/internal/proc"
)

// Span is a range of addresses.
type Span struct{ Start, End uint64 }

// Has says whether an address lies in it.
func (s Span) Has(address uint64) bool { return address-s.Start < s.End-s.Start }

// Gadget is code of a process that a borrowed thread makes system calls by.
type Gadget struct {
	Address  uint64 // a system call instruction
	Restorer uint64 // where signal handlers return to; 0: not found
	// Returning says that the instruction is followed by a return.
	Returning bool
}

// ErrNoGadget says that code has no system call instruction.
var ErrNoGadget = errors.New("no system call instruction")

// What is looked for: a system call, with a return behind it if there is one, and
// mov $15,%rax; syscall.
var (
	syscallCode   = []byte{0x0f, 0x05}
	returningCode = []byte{0x0f, 0x05, 0xc3}
	restorerCode  = []byte{0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05}
)

// FindGadget finds one in code of a process, with the restorer where the code is that
// of its C library. It returns [ErrNoGadget], or why the code cannot be read.
func FindGadget(process *proc.Handle, within Span) (g Gadget, err error) {
	code := make([]byte, within.End-within.Start)
	if err := process.Read(within.Start, code); err != nil {
		return g, err
	}
	i := bytes.Index(code, returningCode)
	g.Returning = i >= 0
	if !g.Returning {
		i = bytes.Index(code, syscallCode)
	}
	if i < 0 {
		return g, ErrNoGadget
	}
	g.Address = within.Start + uint64(i)
	if i := bytes.Index(code, restorerCode); i >= 0 {
		g.Restorer = within.Start + uint64(i)
	}
	return g, nil
}
