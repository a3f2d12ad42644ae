// SPDX-License-Identifier: Apache-2.0

package objfile

import (
	"debug/elf"
	"fmt"
)

// Segment is a part of the object as it lies in memory.
type Segment struct {
	// Address is virtual: [Image.Address] gives that in a process.
	Address uint64
	// Size in bytes, with what the file does not hold (.bss).
	Size uint64
}

// Writable returns the segments that the object may write to, those parts
// included that the loader makes read-only (RELRO), in the order of the file.
func (l *layout) Writable() []Segment {
	var segments []Segment
	for _, p := range l.headers.programs {
		if elf.ProgType(p.Type) == elf.PT_LOAD && elf.ProgFlag(p.Flags)&elf.PF_W != 0 {
			segments = append(segments, Segment{Address: p.Vaddr, Size: p.Memsz})
		}
	}
	return segments
}

// Content is a part of the object as the file has it.
type Content struct {
	// Address is virtual.
	Address uint64
	Bytes   []byte
	// Executable says that it holds code.
	Executable bool
}

// maxLoaded bounds the segments that are read: linkers write ten, and each byte of one
// may be compared with all others.
const maxLoaded = 64

// Loaded reads everything that the loader maps, without what the file does not
// hold (.bss), in the order of addresses. [ErrUnsupported] where it has more
// than limit bytes, or 64 segments. The memory is the caller's.
func (l *layout) Loaded(limit uint64) (all []Content, err error) {
	for _, p := range l.headers.programs {
		if elf.ProgType(p.Type) != elf.PT_LOAD || p.Filesz == 0 {
			continue
		}
		if len(all) == maxLoaded {
			return nil, fmt.Errorf("%w: more than %d segments to load", ErrUnsupported, maxLoaded)
		}
		content, err := l.bytes("segment", p.Off, p.Filesz, limit)
		if err != nil {
			return nil, err
		}
		limit -= p.Filesz
		all = append(all, Content{Address: p.Vaddr, Bytes: content, Executable: elf.ProgFlag(p.Flags)&elf.PF_X != 0})
	}
	return all, nil
}
