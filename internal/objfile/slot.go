// SPDX-License-Identifier: Apache-2.0

package objfile

import (
	"debug/elf"
	"encoding/binary"
	"fmt"

	"github.com/attune-hpc/attune/internal/symname"
)

// Slot is a word of an object that the loader fills with the address of a
// function or variable of another object. Calls through the PLT or with
// -fno-plt go through it; writing another address there redirects them.
type Slot struct {
	// Symbol is the name of what the slot refers to.
	Symbol string
	// VirtualAddress of the slot, before the load bias is added.
	VirtualAddress uint64
	// RELRO says that the page of the slot is made read-only after loading.
	RELRO bool
	// Lazy says that the slot may hold the address of the PLT's resolver until
	// the first call.
	Lazy bool
	// Origin is what makes it a slot; zero for those of indirect functions.
	Origin Origin
}

// maxSlots bounds what one pattern returns.
const maxSlots = 65536

// GOTSlots returns the slots of the image's file whose symbol matches; see
// [File.GOTSlots]. [Image.Address] of a slot is where it lies in the process.
func (i Image) GOTSlots(patterns ...string) ([]Slot, error) {
	file, err := i.Open()
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }() // read only
	slots, err := file.GOTSlots(patterns...)
	if err != nil {
		return nil, fmt.Errorf("GOT of %s: %w", i.Path, err)
	}
	return slots, nil
}

// GOTSlots returns the slots of the object (R_*_JUMP_SLOT and R_*_GLOB_DAT)
// whose symbol matches one of the names or patterns (see [symname.Parse]; a
// demangled name must be whole, since an importer does not know which of
// several functions is meant). An object may have two slots for one function,
// which is both called and has its address taken.
func (f *File) GOTSlots(patterns ...string) ([]Slot, error) {
	filters, err := matchers(patterns)
	if err != nil {
		return nil, err
	}
	symbols, err := f.dynamicSymbols()
	if err != nil {
		return nil, err
	}
	wanted := symbols.wanted(filters)
	if wanted == nil {
		return nil, nil // most objects: nothing to look for in their relocations
	}
	var slots []Slot
	seen, names := make(map[uint64]bool), newNames()
	for _, where := range f.relocations() {
		data, err := f.load("relocations", where.table)
		if err != nil {
			return nil, err
		}
		for at := where.address; len(data) >= relaBytes; data, at = data[relaBytes:], at+relaBytes {
			slot, ok := f.slot(data[:relaBytes], at, symbols, wanted)
			if !ok || seen[slot.VirtualAddress] {
				continue
			}
			if len(slots) == maxSlots || names.Spend(len(slot.Symbol)) != nil {
				return slots, fmt.Errorf("%w: more than %d slots match %q, or their names have more than %d bytes", ErrTooManySymbols, maxSlots, patterns, maxFoundNames)
			}
			seen[slot.VirtualAddress] = true
			slots = append(slots, slot)
		}
	}
	return slots, nil
}

// wanted marks the symbols whose name a filter wants; nil if none does. A library has
// many more relocations than symbols.
func (t *symbolTable) wanted(filters []filter) []bool {
	var marks []bool
	for _, want := range filters {
		near := begins(t.names, want.part)
		for i := range t.count() {
			entry := t.entry(i)
			if !near.has(uint64(entry.Name)) {
				continue
			}
			if name := t.name(entry); len(name) == 0 || !want.wants(name) {
				continue
			}
			if marks == nil {
				marks = make([]bool, t.count())
			}
			marks[i] = true
		}
	}
	return marks
}

// matchers are filters for patterns, one of them for all that only a linker name can
// be: dozens of functions are looked for at a time.
func matchers(patterns []string) ([]filter, error) {
	var all []filter
	exact := make(map[string]bool)
	for _, pattern := range patterns {
		query, err := symname.Parse(pattern)
		if err != nil {
			return nil, err
		}
		if query.IsIdentifier() {
			exact[query.Text] = true
			continue
		}
		all = append(all, filter{query.Part(), func(name []byte) bool {
			grade := query.Grade(name)
			return grade == symname.Linker || grade == symname.Whole || grade == symname.Pattern
		}})
	}
	if len(exact) > 0 {
		all = append(all, filter{wants: func(name []byte) bool { return exact[string(name)] }})
	}
	return all, nil
}

// relocationTable is a table of relocations, and its virtual address.
type relocationTable struct {
	table

	address uint64
}

// relocations finds .rela.plt and .rela.dyn by the dynamic segment.
func (l *linking) relocations() []relocationTable {
	find := func(place, size elf.DynTag) relocationTable {
		return relocationTable{l.dynamic.table(l.headers, place, size), l.dynamic.values[place]}
	}
	var tables []relocationTable
	if elf.DynTag(l.dynamic.values[elf.DT_PLTREL]) == elf.DT_RELA {
		tables = append(tables, find(elf.DT_JMPREL, elf.DT_PLTRELSZ))
	}
	return append(tables, find(elf.DT_RELA, elf.DT_RELASZ))
}

// slot decodes the relocation that lies at a virtual address.
func (l *linking) slot(data []byte, at uint64, symbols *symbolTable, wanted []bool) (Slot, bool) {
	address := binary.LittleEndian.Uint64(data)
	info := binary.LittleEndian.Uint64(data[8:])
	index := int(info >> 32)
	jump, ok := slotRelocation(l.Machine(), uint32(info))
	if !ok || index >= len(wanted) || !wanted[index] {
		return Slot{}, false
	}
	name := symbols.name(symbols.entry(index))
	if _, mapped := l.headers.segment(address, 8); !mapped {
		return Slot{}, false
	}
	return Slot{
		Symbol: string(name), VirtualAddress: address,
		RELRO: l.headers.relro(address, 8), Lazy: jump && !l.BindNow(),
		Origin: l.originOf(data, at, symbols, index),
	}, true
}

// slotRelocation says whether a relocation type fills a GOT slot, and whether
// that slot belongs to the PLT.
func slotRelocation(machine elf.Machine, kind uint32) (jump, ok bool) {
	switch machine {
	case elf.EM_X86_64:
		jump = elf.R_X86_64(kind) == elf.R_X86_64_JMP_SLOT
		return jump, jump || elf.R_X86_64(kind) == elf.R_X86_64_GLOB_DAT
	case elf.EM_AARCH64:
		jump = elf.R_AARCH64(kind) == elf.R_AARCH64_JUMP_SLOT
		return jump, jump || elf.R_AARCH64(kind) == elf.R_AARCH64_GLOB_DAT
	}
	return false, false
}

// copies says whether the loader copies a variable of a library into this
// program (R_*_COPY). Then everybody uses the copy, the library included.
func (f *File) copies(name string) (bool, error) {
	symbols, err := f.dynamicSymbols()
	if err != nil {
		return false, err
	}
	for _, where := range f.relocations() {
		data, err := f.load("relocations", where.table)
		if err != nil {
			return false, err
		}
		for ; len(data) >= relaBytes; data = data[relaBytes:] {
			info := binary.LittleEndian.Uint64(data[8:])
			index := int(info >> 32)
			if !copyRelocation(f.Machine(), uint32(info)) || index == 0 || index >= symbols.count() {
				continue
			}
			if string(symbols.name(symbols.entry(index))) == name {
				return true, nil
			}
		}
	}
	return false, nil
}

func copyRelocation(machine elf.Machine, kind uint32) bool {
	switch machine {
	case elf.EM_X86_64:
		return elf.R_X86_64(kind) == elf.R_X86_64_COPY
	case elf.EM_AARCH64:
		return elf.R_AARCH64(kind) == elf.R_AARCH64_COPY
	}
	return false
}
