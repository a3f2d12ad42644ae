// SPDX-License-Identifier: Apache-2.0

package objfile

import (
	"debug/elf"
	"encoding/binary"
	"fmt"
	"math"
	"os"
)

// headers are the parts of an ELF file that say where everything else is.
type headers struct {
	file     elf.Header64
	programs []elf.Prog64
	// sections is empty where the file has no usable section headers.
	sections []elf.Section64
}

func readHeaders(r reader) (*headers, error) {
	if err := checkIdent(r); err != nil {
		return nil, err
	}
	h := new(headers)
	if err := r.structAt("file header", 0, &h.file); err != nil {
		return nil, err
	}
	if err := h.readPrograms(r); err != nil {
		return nil, err
	}
	// Nothing at run time needs section headers, so a file whose section
	// headers are cut off or nonsense is read without them.
	h.readSections(r)
	return h, nil
}

// checkIdent looks at the first 16 bytes.
func checkIdent(r reader) error {
	if r.size < elf.EI_NIDENT {
		return ErrNotELF
	}
	ident, err := r.bytes("identification", 0, elf.EI_NIDENT, elf.EI_NIDENT)
	if err != nil {
		return err
	}
	switch {
	case string(ident[:4]) != elf.ELFMAG:
		return ErrNotELF
	case elf.Class(ident[elf.EI_CLASS]) != elf.ELFCLASS64:
		return fmt.Errorf("%w: %v", ErrUnsupported, elf.Class(ident[elf.EI_CLASS]))
	case elf.Data(ident[elf.EI_DATA]) != elf.ELFDATA2LSB:
		return fmt.Errorf("%w: %v", ErrUnsupported, elf.Data(ident[elf.EI_DATA]))
	case elf.Version(ident[elf.EI_VERSION]) != elf.EV_CURRENT:
		return fmt.Errorf("%w: version %d", ErrUnsupported, ident[elf.EI_VERSION])
	}
	return nil
}

func (h *headers) readPrograms(r reader) error {
	count := uint64(h.file.Phnum)
	if count == 0 {
		return nil
	}
	size := uint64(binary.Size(elf.Prog64{}))
	if uint64(h.file.Phentsize) != size {
		return fmt.Errorf("%w: program headers of %d bytes", ErrCorrupt, h.file.Phentsize)
	}
	data, err := r.bytes("program headers", h.file.Phoff, count*size, maxProgramHeaders*size)
	if err != nil {
		return err
	}
	h.programs = make([]elf.Prog64, count)
	if _, err := binary.Decode(data, binary.LittleEndian, h.programs); err != nil {
		return fmt.Errorf("program headers: %w", err)
	}
	return nil
}

func (h *headers) readSections(r reader) {
	size := uint64(binary.Size(elf.Section64{}))
	count := uint64(h.file.Shnum)
	if h.file.Shoff == 0 || uint64(h.file.Shentsize) != size {
		return
	}
	if count == 0 { // more than fit into 16 bits: the first header says how many
		var first elf.Section64
		if r.structAt("first section header", h.file.Shoff, &first) != nil {
			return
		}
		count = first.Size
	}
	if count > maxSections {
		return
	}
	data, err := r.bytes("section headers", h.file.Shoff, count*size, maxSections*size)
	if err != nil {
		return
	}
	sections := make([]elf.Section64, count)
	if _, err := binary.Decode(data, binary.LittleEndian, sections); err == nil {
		h.sections = sections
	}
}

// program returns the first program header of a type.
func (h *headers) program(kind elf.ProgType) (elf.Prog64, bool) {
	for _, p := range h.programs {
		if elf.ProgType(p.Type) == kind {
			return p, true
		}
	}
	return elf.Prog64{}, false
}

// section returns the first section of a type.
func (h *headers) section(kind elf.SectionType) (elf.Section64, bool) {
	for _, s := range h.sections {
		if elf.SectionType(s.Type) == kind {
			return s, true
		}
	}
	return elf.Section64{}, false
}

// isCode says whether an address is within what is executed.
func (h *headers) isCode(address uint64) bool {
	p, ok := h.segment(address, 1)
	return ok && elf.ProgFlag(p.Flags)&elf.PF_X != 0
}

// segment returns the PT_LOAD that holds size bytes at a virtual address.
func (h *headers) segment(address, size uint64) (elf.Prog64, bool) {
	for _, p := range h.programs {
		if elf.ProgType(p.Type) != elf.PT_LOAD || address < p.Vaddr {
			continue
		}
		if into := address - p.Vaddr; into < p.Memsz && size <= p.Memsz-into {
			return p, true
		}
	}
	return elf.Prog64{}, false
}

// offset translates a virtual address into an offset in the file; false for
// memory that the file does not hold (.bss).
func (h *headers) offset(address, size uint64) (uint64, bool) {
	p, ok := h.segment(address, size)
	if !ok {
		return 0, false
	}
	into := address - p.Vaddr
	if into >= p.Filesz || size > p.Filesz-into || p.Off > math.MaxUint64-into {
		return 0, false
	}
	return p.Off + into, true
}

// relro says whether the loader makes a range read-only after relocation. It
// protects whole pages only, from the segment's first down to its last whole
// one.
func (h *headers) relro(address, size uint64) bool {
	p, ok := h.program(elf.PT_GNU_RELRO)
	if !ok {
		return false
	}
	page := ^uint64(os.Getpagesize() - 1)
	return address >= p.Vaddr&page && address+size <= (p.Vaddr+p.Memsz)&page
}
