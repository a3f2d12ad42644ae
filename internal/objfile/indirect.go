// SPDX-License-Identifier: Apache-2.0

package objfile

import "debug/elf"

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
