// SPDX-License-Identifier: Apache-2.0

package callframe

import "fmt"

// kind is where a register of the caller is.
type kind byte

const (
	same       kind = iota // as it is
	lost                   // nowhere; of the return address: there is no caller
	inMemory               // at the frame's address and an offset
	inRegister             // in a register and an offset, of the frame for the address itself
	isAddress              // the frame's address and an offset
	computed               // by an expression
)

// rule says where one register is.
type rule struct {
	kind     kind
	register uint64
	offset   int64
}

// row holds for some instructions: what the frame's address is, and where registers are.
type row struct {
	frame rule
	saved [Registers]rule
}

// Instructions (DWARF 5, 7.24; the last two are GNU's). The first three are the two
// highest bits of a byte.
const (
	advance = 1
	offset  = 2
	restore = 3

	nothing           = 0x00
	setAddress        = 0x01
	advance1          = 0x02
	advance2          = 0x03
	advance4          = 0x04
	offsetExtended    = 0x05
	restoreExtended   = 0x06
	undefined         = 0x07
	sameValue         = 0x08
	otherRegister     = 0x09
	rememberState     = 0x0a
	restoreState      = 0x0b
	defineFrame       = 0x0c
	defineRegister    = 0x0d
	defineOffset      = 0x0e
	defineExpression  = 0x0f
	expression        = 0x10
	offsetSigned      = 0x11
	defineSigned      = 0x12
	defineOffsetSign  = 0x13
	valueOffset       = 0x14
	valueOffsetSigned = 0x15
	valueExpression   = 0x16
	argumentsSize     = 0x2e
	offsetNegative    = 0x2f
)

// mostStates bounds how many rows are remembered.
const mostStates = 64

// machine executes instructions.
type machine struct {
	row
	cursor
	common  *common
	address uint64 // that the row holds for
	states  []row
}

// machine is ready to execute the entry's own instructions.
func (e Entry) machine() *machine {
	return &machine{row: e.common.initial, common: e.common, address: e.Start, cursor: cursor{left: e.instructions, at: e.at, err: e.common.err}}
}

// row is the one that holds for an instruction of the entry.
func (e Entry) row(address uint64) (row, error) {
	m := e.machine()
	m.until(address)
	return m.row, m.err
}

// until executes as much as holds for an address.
func (m *machine) until(address uint64) {
	for len(m.left) > 0 && m.err == nil {
		op := m.byte()
		low := uint64(op & 0x3f)
		switch op >> 6 {
		case advance:
			m.address += low * m.common.code
		case offset:
			m.save(low, inMemory, int64(m.uleb())*m.common.data)
		case restore:
			m.restore(low)
		default:
			m.extended(op)
		}
		if m.address > address {
			return
		}
	}
}

// extended executes what is not told by the two highest bits.
func (m *machine) extended(op byte) {
	switch op {
	case nothing:
	case setAddress:
		m.address = m.pointer(m.common.encoding)
	case advance1:
		m.address += uint64(m.byte()) * m.common.code
	case advance2:
		m.address += uint64(m.u16()) * m.common.code
	case advance4:
		m.address += uint64(m.u32()) * m.common.code
	case rememberState, restoreState:
		m.state(op == rememberState)
	case argumentsSize:
		m.uleb()
	case defineFrame, defineRegister, defineOffset, defineExpression, defineSigned, defineOffsetSign:
		m.defineFrame(op)
	default:
		m.saved1(op, m.uleb())
	}
}

// state remembers the row, or goes back to the last that was.
func (m *machine) state(remember bool) {
	n := len(m.states)
	switch {
	case remember && n < mostStates:
		m.states = append(m.states, m.row)
	case !remember && n > 0:
		m.row, m.states = m.states[n-1], m.states[:n-1]
	default:
		m.fail(ErrCorrupt)
	}
}

// defineFrame executes an instruction about the frame's address.
func (m *machine) defineFrame(op byte) {
	f := &m.frame
	switch op {
	case defineFrame:
		*f = rule{inRegister, m.uleb(), int64(m.uleb())}
	case defineSigned:
		*f = rule{inRegister, m.uleb(), m.sleb() * m.common.data}
	case defineRegister:
		*f = rule{inRegister, m.uleb(), f.offset}
	case defineOffset:
		f.offset = int64(m.uleb())
	case defineOffsetSign:
		f.offset = m.sleb() * m.common.data
	case defineExpression:
		*f = rule{kind: computed}
		m.take(m.uleb())
	}
}

// saved1 executes an instruction about one register.
func (m *machine) saved1(op byte, register uint64) {
	switch op {
	case offsetExtended:
		m.save(register, inMemory, int64(m.uleb())*m.common.data)
	case offsetSigned:
		m.save(register, inMemory, m.sleb()*m.common.data)
	case offsetNegative:
		m.save(register, inMemory, -int64(m.uleb())*m.common.data)
	case valueOffset:
		m.save(register, isAddress, int64(m.uleb())*m.common.data)
	case valueOffsetSigned:
		m.save(register, isAddress, m.sleb()*m.common.data)
	case restoreExtended:
		m.restore(register)
	case undefined:
		m.save(register, lost, 0)
	case sameValue:
		m.save(register, same, 0)
	case otherRegister:
		m.save(register, inRegister, 0)
		if in := m.uleb(); register < Registers {
			m.saved[register].register = in
		}
	case expression, valueExpression:
		m.save(register, computed, 0)
		m.take(m.uleb())
	default:
		m.fail(fmt.Errorf("%w: instruction %#x", ErrUnsupported, op))
	}
}

// save notes where a register is; those of vectors nobody asks for.
func (m *machine) save(register uint64, where kind, at int64) {
	if register < Registers {
		m.saved[register] = rule{kind: where, offset: at}
	}
}

func (m *machine) restore(register uint64) {
	if register < Registers {
		m.saved[register] = m.common.initial.saved[register]
	}
}
