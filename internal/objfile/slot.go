// SPDX-License-Identifier: Apache-2.0

package objfile

import (
	"debug/elf"
	"fmt"

	"github.com/attune-hpc/attune/internal/symname"
)

// Slot is a word of an object that the loader fills with the address of a
// function or variable of another object. Calls through the PLT or with
// -fno-plt go through it; writing another address there redirects them.
type Slot struct {
	// Symbol is the name of what the slot refers to.
	Symbol string
	// Version of it that the object was linked to; "" if it does not say.
	Version string
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
// several functions is meant; name@VERSION is of those linked to that version). An object may have two slots for one function,
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
	for r, err := range f.relocations() {
		if err != nil {
			return nil, err
		}
		slot, ok := f.slot(r, symbols, wanted)
		if !ok || seen[slot.VirtualAddress] {
			continue
		}
		if len(slots) == maxSlots || names.Spend(len(slot.Symbol)) != nil {
			return slots, fmt.Errorf("%w: more than %d slots match %q, or their names have more than %d bytes", ErrTooManySymbols, maxSlots, patterns, maxFoundNames)
		}
		seen[slot.VirtualAddress] = true
		slots = append(slots, slot)
	}
	return slots, nil
}

// wanted marks the symbols whose name a filter wants; nil if none does. A library has
// many more relocations than symbols.
func (t *symbolTable) wanted(filters []slotFilter) []bool {
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
			if version, _ := t.versions.of(i); want.version != "" && want.version != version {
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

// slotFilter is what slots are looked for by: names, and their version, "" for any.
type slotFilter struct {
	filter

	version string
}

// matchers are filters for patterns, one of them for all that only a linker name can
// be: dozens of functions are looked for at a time.
func matchers(patterns []string) ([]slotFilter, error) {
	var all []slotFilter
	exact := make(map[string]bool)
	for _, pattern := range patterns {
		query, err := symname.Parse(pattern)
		if err != nil {
			return nil, err
		}
		if query.IsIdentifier() && query.Version == "" {
			exact[query.Text] = true
			continue
		}
		all = append(all, slotFilter{version: query.Version, filter: filter{part: query.Part(), wants: func(name []byte) bool {
			grade := query.Grade(name)
			return grade == symname.Linker || grade == symname.Whole || grade == symname.Pattern
		}}})
	}
	if len(exact) > 0 {
		all = append(all, slotFilter{filter: filter{wants: func(name []byte) bool { return exact[string(name)] }}})
	}
	return all, nil
}

// slot is what a relocation fills, if that is a slot of a symbol that is wanted.
func (l *linking) slot(r relocation, symbols *symbolTable, wanted []bool) (Slot, bool) {
	jump, ok := slotRelocation(l.Machine(), r.kind)
	if !ok || r.symbol >= len(wanted) || !wanted[r.symbol] {
		return Slot{}, false
	}
	name := symbols.name(symbols.entry(r.symbol))
	if _, mapped := l.headers.segment(r.fills, 8); !mapped {
		return Slot{}, false
	}
	version, _ := symbols.versions.of(r.symbol)
	return Slot{
		Symbol: string(name), Version: version, VirtualAddress: r.fills,
		RELRO: l.headers.relro(r.fills, 8), Lazy: jump && !l.BindNow(),
		Origin: l.originOf(r, symbols),
	}, true
}

// slotRelocation says whether a relocation type fills a GOT slot, and whether
// that slot belongs to the PLT.
func slotRelocation(machine elf.Machine, kind uint32) (jump, ok bool) {
	if machine != elf.EM_X86_64 {
		return false, false
	}
	jump = elf.R_X86_64(kind) == elf.R_X86_64_JMP_SLOT
	return jump, jump || elf.R_X86_64(kind) == elf.R_X86_64_GLOB_DAT
}

// copies says whether the loader copies a variable of a library into this
// program (R_*_COPY). Then everybody uses the copy, the library included.
func (f *File) copies(name string) (bool, error) {
	symbols, err := f.dynamicSymbols()
	if err != nil {
		return false, err
	}
	for r, err := range f.relocations() {
		if err != nil {
			return false, err
		}
		if copyRelocation(f.Machine(), r.kind) && r.symbol != 0 && r.symbol < symbols.count() &&
			string(symbols.name(symbols.entry(r.symbol))) == name {
			return true, nil
		}
	}
	return false, nil
}

func copyRelocation(machine elf.Machine, kind uint32) bool {
	return machine == elf.EM_X86_64 && elf.R_X86_64(kind) == elf.R_X86_64_COPY
}

// IndirectSlots returns the slots of the object that hold what the resolver at
// a virtual address has chosen (R_*_IRELATIVE): the object's own calls of an
// indirect function go through them.
func (f *File) IndirectSlots(resolver uint64) ([]Slot, error) {
	var slots []Slot
	for r, err := range f.relocations() {
		if err != nil {
			return nil, err
		}
		if !indirectRelocation(f.Machine(), r.kind) || r.addend != resolver {
			continue
		}
		if _, mapped := f.headers.segment(r.fills, 8); mapped {
			slots = append(slots, Slot{VirtualAddress: r.fills, RELRO: f.headers.relro(r.fills, 8)})
		}
	}
	return slots, nil
}

func indirectRelocation(machine elf.Machine, kind uint32) bool {
	return machine == elf.EM_X86_64 && elf.R_X86_64(kind) == elf.R_X86_64_IRELATIVE
}
