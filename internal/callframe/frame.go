// SPDX-License-Identifier: Apache-2.0

package callframe

import (
	"encoding/binary"
	"fmt"
)

// Registers is how many there are in a [Frame], by DWARF's numbers (psABI, 3.6.2).
const Registers = 17

const (
	stackPointer = 7
	wordBytes    = 8
)

// Frame is the general registers of a function that is being executed, the last of
// which is where it goes on.
type Frame [Registers]uint64

// Stack is its stack pointer, and PC where it goes on.
func (f Frame) Stack() uint64 { return f[stackPointer] }

// PC is where it goes on.
func (f Frame) PC() uint64 { return f[returnAddress] }

// Read reads memory of a process, all of it or an error.
type Read func(at uint64, into []byte) error

// Caller is the frame that the function of the entry returns to, of which the registers
// are known when it stands at an instruction; of one that has made a call that is any
// byte of the call. Registers that need not be kept have any value. [ErrOutermost],
// [ErrCorrupt], [ErrUnsupported], or read's error.
func (e Entry) Caller(instruction uint64, f Frame, read Read) (Frame, error) {
	r, err := e.row(instruction)
	if err != nil {
		return f, err
	}
	if r.frame.kind != inRegister || r.frame.register >= Registers {
		return f, fmt.Errorf("%w: an expression for a frame", ErrUnsupported)
	}
	address := f[r.frame.register] + uint64(r.frame.offset)
	caller := f
	caller[stackPointer] = address
	for i, where := range r.saved {
		switch at := address + uint64(where.offset); where.kind {
		case same:
		case inMemory:
			var word [wordBytes]byte
			if err := read(at, word[:]); err != nil {
				return f, err
			}
			caller[i] = binary.LittleEndian.Uint64(word[:])
		case isAddress:
			caller[i] = at
		case inRegister:
			if where.register >= Registers {
				return f, ErrCorrupt
			}
			caller[i] = f[where.register]
		case lost:
			if i == returnAddress {
				return f, ErrOutermost
			}
		case computed:
			return f, fmt.Errorf("%w: an expression for a register", ErrUnsupported)
		}
	}
	if r.saved[returnAddress].kind == same || caller.Stack() <= f.Stack() { // stacks grow down
		return f, ErrCorrupt
	}
	return caller, nil
}
