// SPDX-License-Identifier: Apache-2.0

package objfile

import (
	"debug/elf"
	"encoding/binary"
	"fmt"

	"github.com/attune-hpc/attune/internal/bounded"
)

const (
	// maxCode is how much of an object's code is searched for calls.
	maxCode = 256 << 20
	// maxCalls is how many bytes of it may look like the beginning of one, in two
	// searches: they are a twenty-fifth of usual code.
	maxCalls = 24 << 20
)

// CallGraph says which functions of an object call which others directly.
// Functions are known by where their [Frame] starts. Calls through pointers are
// not in it, nor is what was folded into its caller.
type CallGraph struct {
	// Imported are the calls of functions of other objects, by those who call:
	// the names.
	Imported map[uint64]map[string]bool
	// Callers are the functions that call a function of the same object.
	Callers map[uint64]map[uint64]bool
	// Called says which of the imported functions are called at all: one that is
	// not has its address taken only.
	Called map[string]bool
}

// Calls searches the object's code for calls of the imported functions whose
// symbol matches (see [File.GOTSlots]), and of functions of its own. Code is
// searched byte by byte: what only looks like a call hardly ever leads to where a
// function starts. [ErrUnsupported] but on x86-64, [ErrNoSection] without
// .eh_frame.
func (f *File) Calls(patterns ...string) (*CallGraph, error) {
	if f.Machine() != elf.EM_X86_64 {
		return nil, fmt.Errorf("%w: calls in code for %s", ErrUnsupported, f.Machine())
	}
	slots, err := f.GOTSlots(patterns...)
	if err != nil {
		return nil, err
	}
	frames, err := f.Frames()
	if err != nil {
		return nil, err
	}
	contents, err := f.Loaded(maxCode)
	if err != nil {
		return nil, err
	}
	s := callSearch{frames: frames, slots: make(map[uint64]string), stubs: make(map[uint64]string), graph: &CallGraph{
		Imported: make(map[uint64]map[string]bool), Callers: make(map[uint64]map[uint64]bool), Called: make(map[string]bool),
	}}
	for _, slot := range slots {
		s.slots[slot.VirtualAddress] = slot.Symbol
	}
	s.work = bounded.NewWork("looking for calls in "+f.name, maxCalls)
	for _, look := range []func(at uint64, code []byte){s.stub, s.call} {
		for _, c := range contents {
			if !c.Executable {
				continue
			}
			if err := s.each(c, look); err != nil {
				return nil, fmt.Errorf("%w: %w", ErrUnsupported, err)
			}
		}
	}
	return s.graph, nil
}

// callSearch looks for calls in code.
type callSearch struct {
	frames Frames
	slots  map[uint64]string // of imported functions
	stubs  map[uint64]string // of the PLT
	graph  *CallGraph
	work   *bounded.Work
}

// longestStub is how far a stub's jump may be from its start: endbr64 and a
// prefix.
const longestStub = 5

// each gives every byte from which on there may be a call to look.
func (s *callSearch) each(c Content, look func(at uint64, code []byte)) error {
	for i := 0; i+6 <= len(c.Bytes); i++ {
		if b := c.Bytes[i]; b == 0xe8 || b == 0xe9 || b == 0xff {
			if err := s.work.Spend(1); err != nil {
				return err
			}
			look(c.Address+uint64(i), c.Bytes[i:])
		}
	}
	return nil
}

// stub notes a jump through a slot: the PLT's, or the end of a function.
func (s *callSearch) stub(at uint64, code []byte) {
	if name, ok := s.slots[at+6+displacement(code[2:])]; ok && code[0] == 0xff && code[1] == 0x25 {
		for before := range uint64(longestStub + 1) {
			s.stubs[at-before] = name
		}
	}
}

// call notes a call, or the jump that ends a function with one.
func (s *callSearch) call(at uint64, code []byte) {
	if code[0] == 0xff {
		if name, ok := s.slots[at+6+displacement(code[2:])]; ok && (code[1] == 0x15 || code[1] == 0x25) {
			s.imported(at, name)
		}
		return
	}
	to := at + 5 + displacement(code[1:])
	if name, ok := s.stubs[to]; ok {
		s.imported(at, name)
		return
	}
	callee, ok := s.frames.Holding(to)
	if !ok || callee.Start != to {
		return
	}
	if caller, ok := s.frames.Holding(at); ok && caller != callee {
		add(s.graph.Callers, callee.Start, caller.Start)
	}
}

func (s *callSearch) imported(at uint64, name string) {
	if _, isStub := s.stubs[at]; isStub {
		return
	}
	if caller, ok := s.frames.Holding(at); ok {
		add(s.graph.Imported, caller.Start, name)
		s.graph.Called[name] = true
	}
}

func displacement(code []byte) uint64 {
	return uint64(int64(int32(binary.LittleEndian.Uint32(code))))
}

func add[K comparable](sets map[uint64]map[K]bool, key uint64, value K) {
	if sets[key] == nil {
		sets[key] = make(map[K]bool)
	}
	sets[key][value] = true
}
