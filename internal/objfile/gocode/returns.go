// SPDX-License-Identifier: Apache-2.0

package gocode

import (
	"debug/elf"
	"errors"
	"fmt"

	"golang.org/x/arch/x86/x86asm"

	"github.com/attune-hpc/attune/internal/bounded"
	"github.com/attune-hpc/attune/internal/objfile"
)

// ErrReturns says that not every exit of a function can be found, so that none
// should be counted.
var ErrReturns = errors.New("returns not found")

// Bounds of one function. Those that compilers generate from tables reach some
// hundred kilobytes.
const (
	maxCodeBytes = 1 << 20
	maxReturns   = 256
)

// Returns gives the offsets in the file of all return instructions of a
// function, in ascending order; at least one. Each can be probed as an exit.
// The error wraps [ErrReturns] where the function has no size, holds what is
// not understood, or leaves by a jump into another function.
func Returns(f *objfile.File, function objfile.Symbol) ([]uint64, error) {
	if !function.InFile || !function.Executable || function.Size == 0 {
		return nil, fmt.Errorf("%w: %s has %d bytes of code", ErrReturns, function.Name, function.Size)
	}
	code, err := bounded.Bytes("code of "+function.Name, function.Size, maxCodeBytes)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrReturns, err)
	}
	if _, err := f.ReadAt(code, int64(function.FileOffset)); err != nil {
		return nil, fmt.Errorf("code of %s: %w", function.Name, err)
	}
	if f.Machine() != elf.EM_X86_64 {
		return nil, fmt.Errorf("%w: code for %v", ErrReturns, f.Machine())
	}
	returns, err := returnsIn(code)
	switch {
	case err != nil:
		return nil, fmt.Errorf("%s: %w", function.Name, err)
	case len(returns) == 0:
		return nil, fmt.Errorf("%w: %s never returns", ErrReturns, function.Name)
	case len(returns) > maxReturns:
		return nil, fmt.Errorf("%w: %s returns at more than %d places", ErrReturns, function.Name, maxReturns)
	}
	for i := range returns {
		returns[i] += function.FileOffset
	}
	return returns, nil
}

// returnsIn decodes all instructions one after the other: Go has no data
// within its code.
func returnsIn(code []byte) ([]uint64, error) {
	var returns []uint64
	for at := 0; at < len(code); {
		instruction, err := x86asm.Decode(code[at:], 64)
		if err != nil || instruction.Len == 0 {
			return nil, fmt.Errorf("%w: instruction at +%#x is not understood", ErrReturns, at)
		}
		if instruction.Op == x86asm.RET {
			returns = append(returns, uint64(at))
		}
		if target, ok := instruction.Args[0].(x86asm.Rel); ok && instruction.Op != x86asm.CALL {
			if to := at + instruction.Len + int(target); to < 0 || to >= len(code) {
				return nil, fmt.Errorf("%w: jump at +%#x into another function", ErrReturns, at)
			}
		}
		at += instruction.Len
	}
	return returns, nil
}
