// SPDX-License-Identifier: Apache-2.0

package objfile

import "debug/elf"

// Segment is a part of the object as it lies in memory.
type Segment struct {
	// Address is virtual: [Image.Address] gives that in a process.
	Address uint64
	// Size in bytes, with what the file does not hold (.bss).
	Size uint64
}

// Writable returns the segments that the object may write to, those parts
// included that the loader makes read-only (RELRO), in the order of the file.
func (f *File) Writable() []Segment {
	var segments []Segment
	for _, p := range f.headers.programs {
		if elf.ProgType(p.Type) == elf.PT_LOAD && elf.ProgFlag(p.Flags)&elf.PF_W != 0 {
			segments = append(segments, Segment{Address: p.Vaddr, Size: p.Memsz})
		}
	}
	return segments
}
