// SPDX-License-Identifier: Apache-2.0

package capture

import (
	"encoding/binary"
	"errors"
	"math/bits"

	"github.com/attune-hpc/attune/dmlib/abi"
)

// Layout of struct attune_program in program.h; a test of controller/shm
// compares it with the C compiler's.
const (
	// ProgramSize is the size of an encoded program in bytes.
	ProgramSize = abi.ProgramBytes
)

var errGlobals = errors.New("addresses do not match the program's global variables")

// Encode makes struct attune_program: what an engine executes in one process.
// globals are the addresses of p.Globals() there, in that order. table is the
// number of the engine's table for keys, less than 2^32-1; it is ignored if
// there is no key.
func (p Program) Encode(globals []uint64, table uint32) ([ProgramSize]byte, error) {
	var out [ProgramSize]byte
	if len(globals) != len(p.Globals()) {
		return out, errGlobals
	}
	out[abi.ProgramCapturesAt] = byte(len(p.Captures))
	out[abi.ProgramPredicatesAt] = byte(len(p.Predicates))
	out[abi.ProgramValueAt] = byte(p.Value + 1)
	out[abi.ProgramKeyAt] = byte(p.Key + 1)
	if p.Key != None {
		binary.LittleEndian.PutUint32(out[abi.ProgramTableAt:], table+1)
		binary.LittleEndian.PutUint32(out[abi.ProgramMaxKeysAt:], uint32(p.MaxKeys))
		binary.LittleEndian.PutUint32(out[abi.ProgramPlacesAt:], uint32(p.Places()))
	}
	for i, c := range p.Captures {
		if c.Source == SourceGlobal {
			c.Value, globals = globals[0], globals[1:]
		}
		c.encode(out[abi.ProgramCaptureAt+i*abi.CaptureBytes:])
	}
	for i, c := range p.Predicates {
		at := out[abi.ProgramPredicateAt+i*abi.PredicateBytes:]
		at[abi.PredicateCaptureAt], at[abi.PredicateComparisonAt] = byte(c.Capture), byte(c.Operator)
		binary.LittleEndian.PutUint64(at[abi.PredicateMaskAt:], c.Mask)
		binary.LittleEndian.PutUint64(at[abi.PredicateOperandAt:], c.Operand)
	}
	return out, nil
}

// Places is how many places the table of a program with a key has: a power of two, at
// least twice as many as keys.
func (p Program) Places() int { return 2 << bits.Len(uint(max(p.MaxKeys, 1)-1)) }

func (c Capture) encode(out []byte) {
	out[abi.CaptureSourceAt], out[abi.CaptureTypeAt] = byte(c.Source), byte(c.Type)
	out[abi.CaptureIndexAt], out[abi.CaptureStepsAt] = byte(c.Index), byte(len(c.Dereference))
	if c.Source == SourceGlobal {
		out[abi.CaptureSourceAt] = byte(SourceConstant) // its address is one
		if c.StaysMapped {
			out[abi.CaptureIndexAt] = abi.StaysMapped
		}
	}
	binary.LittleEndian.PutUint32(out[abi.CaptureLimitAt:], uint32(c.Limit))
	binary.LittleEndian.PutUint64(out[abi.CaptureValueAt:], c.Value)
	for i, offset := range c.Dereference {
		binary.LittleEndian.PutUint32(out[abi.CaptureOffsetAt+4*i:], uint32(offset))
	}
}
