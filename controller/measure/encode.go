// SPDX-License-Identifier: Apache-2.0

package measure

import (
	"encoding/binary"
	"errors"
)

// Layout of struct attune_program in program.h; a test of controller/ring
// compares it with the C compiler's.
const (
	// ProgramSize is the size of an encoded program in bytes.
	ProgramSize = 512

	programCaptures   = 0
	programPredicates = 1
	programValue      = 2
	programKey        = 3
	programTable      = 4
	programMaxKeys    = 8
	programCapture    = 16
	programPredicate  = programCapture + MaxCaptures*captureSize

	staysMapped = 1 // in place of a constant's index

	captureSource = 0
	captureType   = 1
	captureIndex  = 2
	captureSteps  = 3
	captureLimit  = 4
	captureValue  = 8
	captureOffset = 16
	captureSize   = 32

	predicateCapture  = 0
	predicateOperator = 1
	predicateMask     = 8
	predicateOperand  = 16
	predicateSize     = 24
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
	out[programCaptures] = byte(len(p.Captures))
	out[programPredicates] = byte(len(p.Predicates))
	out[programValue] = byte(p.Value + 1)
	out[programKey] = byte(p.Key + 1)
	if p.Key != None {
		binary.LittleEndian.PutUint32(out[programTable:], table+1)
		binary.LittleEndian.PutUint32(out[programMaxKeys:], uint32(p.MaxKeys))
	}
	for i, c := range p.Captures {
		if c.Source == SourceGlobal {
			c.Value, globals = globals[0], globals[1:]
		}
		c.encode(out[programCapture+i*captureSize:])
	}
	for i, c := range p.Predicates {
		at := out[programPredicate+i*predicateSize:]
		at[predicateCapture], at[predicateOperator] = byte(c.Capture), byte(c.Operator)
		binary.LittleEndian.PutUint64(at[predicateMask:], c.Mask)
		binary.LittleEndian.PutUint64(at[predicateOperand:], c.Operand)
	}
	return out, nil
}

func (c Capture) encode(out []byte) {
	out[captureSource], out[captureType] = byte(c.Source), byte(c.Type)
	out[captureIndex], out[captureSteps] = byte(c.Index), byte(len(c.Dereference))
	if c.Source == SourceGlobal {
		out[captureSource] = byte(SourceConstant) // its address is one
		if c.StaysMapped {
			out[captureIndex] = staysMapped
		}
	}
	binary.LittleEndian.PutUint32(out[captureLimit:], uint32(c.Limit))
	binary.LittleEndian.PutUint64(out[captureValue:], c.Value)
	for i, offset := range c.Dereference {
		binary.LittleEndian.PutUint32(out[captureOffset+4*i:], uint32(offset))
	}
}
