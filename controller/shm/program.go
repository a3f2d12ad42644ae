// SPDX-License-Identifier: Apache-2.0

package shm

import (
	"errors"
	"fmt"
	"slices"

	"github.com/attune-hpc/attune/controller/aggregate"
	"github.com/attune-hpc/attune/controller/capture"
	"github.com/attune-hpc/attune/dmlib/abi"
)

// ErrNoProgram is returned where a process can have no more points that capture
// something, or that have keys; see [Geometry].
var ErrNoProgram = errors.New("the memory shared with the process has no room for another point that captures values")

// Program is what a point captures in one process. It is immutable.
type Program struct {
	source  capture.Program
	globals []uint64
	code    [capture.ProgramSize]byte // with table 0, to compare
}

// NewProgram makes what DMLib executes. globals are the addresses in the
// process of source.Globals(), in that order.
func NewProgram(source capture.Program, globals []uint64) (*Program, error) {
	code, err := source.Encode(globals, 0)
	if err != nil {
		return nil, err
	}
	return &Program{source: source, globals: slices.Clone(globals), code: code}, nil
}

// keyed, signed and equal are for nil, too.
func (p *Program) keyed() bool { return p != nil && p.source.Key != capture.None }

// own says that what is summed up is the point's own value.
func (p *Program) own() bool { return p == nil || p.source.Value == capture.None }

func (p *Program) signed() bool { return p != nil && p.source.Signed() }

func (p *Program) equal(q *Program) bool {
	return p == q || p != nil && q != nil && p.code == q.code
}

// programUse is a program in the memory file. All local points of one session
// point that capture the same share it, and so its keys.
type programUse struct {
	point      uint16
	duration   bool
	program    *Program
	users      int // local points
	number     int
	keys       int                      // number of the table, noTable: none
	unreadable uint64                   // at the last Aggregates
	last       map[int]aggregate.Counts // by place in its table
}

const noTable = -1

// word is what the control of a point says of it; 0 for nil.
func (u *programUse) word() uint32 {
	if u == nil {
		return 0
	}
	return uint32(u.number)
}

// table is the number of its table, or noTable; also for nil.
func (u *programUse) table() int {
	if u == nil {
		return noTable
	}
	return u.keys
}

func upTo(n int) []int {
	all := make([]int, 0, max(n, 0))
	for i := range n {
		all = append(all, i)
	}
	return all
}

// useProgram finds or makes the program of a point, nil if it has none. Who
// does not need it any more calls leaveProgram. The caller holds control.
func (m *Memory) useProgram(c PointControl) (*programUse, error) {
	if c.Program == nil {
		return nil, nil //nolint:nilnil // no program is what was asked for
	}
	for _, u := range m.programs {
		if u.point == c.Point && u.duration == c.Duration && u.program.equal(c.Program) {
			u.users++
			return u, nil
		}
	}
	if len(m.freePrograms) == 0 || c.Program.keyed() && len(m.freeTables) == 0 {
		return nil, fmt.Errorf("point %d: %w", c.Point, ErrNoProgram)
	}
	u := &programUse{point: c.Point, duration: c.Duration, program: c.Program, users: 1, keys: noTable}
	u.number, m.freePrograms = m.freePrograms[0], m.freePrograms[1:]
	if c.Program.keyed() {
		u.keys, m.freeTables = m.freeTables[0], m.freeTables[1:]
		u.last = make(map[int]aggregate.Counts)
	}
	code, err := c.Program.source.Encode(c.Program.globals, uint32(max(u.keys, 0)))
	if err != nil {
		return nil, err
	}
	at := m.programAt(u.number)
	copy(m.data[at:at+len(code)], code[:])
	u.unreadable = load64(m.data, at+abi.ProgramSlotUnreadableAt)
	m.programs = append(m.programs, u)
	return u, nil
}

// leaveProgram gives a program back that a point used; nil is nothing. The
// caller holds control.
func (m *Memory) leaveProgram(u *programUse) {
	if u == nil {
		return
	}
	if u.users--; u.users > 0 {
		return
	}
	m.programs = slices.DeleteFunc(m.programs, func(other *programUse) bool { return other == u })
	m.freePrograms = append(m.freePrograms, u.number)
	if u.keys != noTable {
		m.clearTable(u)
		m.freeTables = append(m.freeTables, u.keys)
	}
}

// takeUnreadable is how many hits could not be read since it was last asked; 0
// for nil. The caller holds life and control.
func (m *Memory) takeUnreadable(u *programUse) uint64 {
	if u == nil {
		return 0
	}
	now := load64(m.data, m.programAt(u.number)+abi.ProgramSlotUnreadableAt)
	difference := now - u.unreadable
	u.unreadable = now
	return difference
}
