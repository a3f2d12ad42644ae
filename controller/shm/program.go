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

// table is where the hits of a program are counted by key. The caller of its methods
// holds life.
type table struct {
	*mapping
	number int // of the table in the memory file
	size   int // how many places of it are used
}

// rest has the hits of keys without a place.
func (t *table) rest() *aggregate.Memory {
	return &t.aggregates(t.tableAt(t.number)+abi.TableRestAt, 1)[0]
}

// eachPlace is [aggregate.Table.Each] for the hits of the others, as far as the table is there.
func (t *table) eachPlace(visit func(place int, key uint64, sums *aggregate.Memory)) {
	start := t.tableAt(t.number) + abi.TablePlaceAt
	places := t.aggregates(start, t.size)
	for place := 0; place < t.size; place++ {
		next := t.nextPresent(start + place*abi.AggregateBytes)
		if place = max(place, (next-start)/abi.AggregateBytes); place < t.size {
			places.Visit(place, visit)
		}
	}
}

// each calls f with all aggregates by key, and the rest.
func (t *table) each(f func(*aggregate.Memory)) {
	f(t.rest())
	t.eachPlace(func(_ int, _ uint64, sums *aggregate.Memory) { f(sums) })
}

// clear makes the table as new. A thread that is in the middle of a hit may still
// leave it in there.
func (t *table) clear() {
	t.each(func(sums *aggregate.Memory) { clear(sums[:]) })
	store32(t.data, t.tableAt(t.number)+abi.TableKeysAt, 0)
}

// programUse is a program in the memory file. All local points of one session
// point that capture the same share it, and so its keys.
type programUse struct {
	point      uint16
	duration   bool
	program    *Program
	users      int // local points
	number     int
	keys       *table                   // nil: none
	unreadable uint64                   // at the last Aggregates
	last       map[int]aggregate.Counts // by place in its table
}

// word is what the control of a point says of it; 0 for nil.
func (u *programUse) word() uint32 {
	if u == nil {
		return 0
	}
	return uint32(u.number)
}

// programs are those of one memory file. Points.mu guards them; the caller holds
// life as well.
type programs struct {
	*mapping
	inUse []*programUse
	// Free ones, used as queues: a thread that still executes a program when
	// its point is taken away must not find another one's in its place.
	freePrograms, freeTables []int
}

func newPrograms(m *mapping) programs {
	return programs{mapping: m, freePrograms: upTo(m.geometry.Programs), freeTables: upTo(m.geometry.Tables)}
}

func upTo(n int) []int {
	all := make([]int, 0, max(n, 0))
	for i := range n {
		all = append(all, i)
	}
	return all
}

// use finds or makes the program of a point, nil if it has none. Who does not
// need it any more calls leave.
func (p *programs) use(point uint16, duration bool, program *Program) (*programUse, error) {
	if program == nil {
		return nil, nil //nolint:nilnil // no program is what was asked for
	}
	for _, u := range p.inUse {
		if u.point == point && u.duration == duration && u.program.equal(program) {
			u.users++
			return u, nil
		}
	}
	if len(p.freePrograms) == 0 || program.keyed() && len(p.freeTables) == 0 {
		return nil, fmt.Errorf("point %d: %w", point, ErrNoProgram)
	}
	u := &programUse{point: point, duration: duration, program: program, users: 1}
	u.number, p.freePrograms = p.freePrograms[0], p.freePrograms[1:]
	number := 0 // of the table
	if program.keyed() {
		number, p.freeTables = p.freeTables[0], p.freeTables[1:]
		u.keys = &table{mapping: p.mapping, number: number, size: program.source.Places()}
		u.last = make(map[int]aggregate.Counts)
	}
	code, err := program.source.Encode(program.globals, uint32(number))
	if err != nil {
		return nil, err
	}
	at := p.programAt(u.number)
	copy(p.data[at:at+len(code)], code[:])
	u.unreadable = load64(p.data, at+abi.ProgramSlotUnreadableAt)
	p.inUse = append(p.inUse, u)
	return u, nil
}

// leave gives a program back that a point used; nil is nothing.
func (p *programs) leave(u *programUse) {
	if u == nil {
		return
	}
	if u.users--; u.users > 0 {
		return
	}
	p.inUse = slices.DeleteFunc(p.inUse, func(other *programUse) bool { return other == u })
	p.freePrograms = append(p.freePrograms, u.number)
	if u.keys != nil {
		u.keys.clear()
		p.freeTables = append(p.freeTables, u.keys.number)
	}
}

// takeUnreadable is how many hits could not be read since it was last asked; 0
// for nil.
func (p *programs) takeUnreadable(u *programUse) uint64 {
	if u == nil {
		return 0
	}
	now := load64(p.data, p.programAt(u.number)+abi.ProgramSlotUnreadableAt)
	difference := now - u.unreadable
	u.unreadable = now
	return difference
}
