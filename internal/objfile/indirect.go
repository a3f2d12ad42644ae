// SPDX-License-Identifier: Apache-2.0

package objfile

import (
	"debug/elf"
	"encoding/binary"
)

// IndirectSlots returns the slots of the object that hold what the resolver at
// a virtual address has chosen (R_*_IRELATIVE): the object's own calls of an
// indirect function go through them.
func (f *File) IndirectSlots(resolver uint64) ([]Slot, error) {
	var slots []Slot
	for _, where := range f.relocations() {
		data, err := f.load("relocations", where.table)
		if err != nil {
			return nil, err
		}
		for ; len(data) >= relaBytes; data = data[relaBytes:] {
			address := binary.LittleEndian.Uint64(data)
			kind := uint32(binary.LittleEndian.Uint64(data[8:]))
			if !indirectRelocation(f.Machine(), kind) || binary.LittleEndian.Uint64(data[16:]) != resolver {
				continue
			}
			if _, mapped := f.headers.segment(address, 8); mapped {
				slots = append(slots, Slot{VirtualAddress: address, RELRO: f.headers.relro(address, 8)})
			}
		}
	}
	return slots, nil
}

func indirectRelocation(machine elf.Machine, kind uint32) bool {
	switch machine {
	case elf.EM_X86_64:
		return elf.R_X86_64(kind) == elf.R_X86_64_IRELATIVE
	case elf.EM_AARCH64:
		return elf.R_AARCH64(kind) == elf.R_AARCH64_IRELATIVE
	}
	return false
}
