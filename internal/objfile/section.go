// SPDX-License-Identifier: Apache-2.0

package objfile

import (
	"debug/elf"
	"errors"
	"fmt"

	"github.com/attune-hpc/attune/internal/bounded"
)

// ErrNoSection says that the file has no such section, or that its section
// headers were stripped.
var ErrNoSection = errors.New("no such section")

// MaxSectionBytes is the greatest size of a section that [File.Section] reads,
// also after decompression.
const MaxSectionBytes = 512 << 20

// HasSection says whether the file has a section with content.
func (l *layout) HasSection(name string) bool {
	section, ok := l.namedSection(name)
	return ok && elf.SectionType(section.Type) != elf.SHT_NOBITS
}

// SectionAddress is the virtual address of a section, and its size in bytes;
// false if the file has no such section.
func (l *layout) SectionAddress(name string) (address, size uint64, ok bool) {
	section, ok := l.namedSection(name)
	return section.Addr, section.Size, ok
}

// ReadAt implements [io.ReaderAt] on the file's bytes.
func (l *layout) ReadAt(p []byte, offset int64) (int, error) { return l.at.ReadAt(p, offset) }

// Offset is the offset in the file of size bytes at a virtual address; false
// for what the file does not hold.
func (l *layout) Offset(address, size uint64) (offset uint64, ok bool) {
	offset, ok = l.headers.offset(address, size)
	return offset, ok && offset < l.size && size <= l.size-offset
}

// Section reads a section whole, decompressed where it is compressed by zlib,
// into memory that the caller owns. [ErrNoSection], also for a section without
// content; [ErrUnsupported] beyond limit bytes (at most [MaxSectionBytes]) or
// compressed by another algorithm; [ErrCorrupt].
func (l *layout) Section(name string, limit uint64) ([]byte, error) {
	section, ok := l.namedSection(name)
	if !ok || elf.SectionType(section.Type) == elf.SHT_NOBITS {
		return nil, fmt.Errorf("%w: %s in %s", ErrNoSection, name, l.name)
	}
	limit = min(limit, MaxSectionBytes)
	if !compressed(section) {
		return l.bytes(name, section.Off, section.Size, limit)
	}
	return l.decompress(name, section, limit)
}

// decompress reads an SHF_COMPRESSED section.
func (l *layout) decompress(name string, section elf.Section64, limit uint64) ([]byte, error) {
	var head elf.Chdr64
	const headBytes = 24
	if section.Size < headBytes {
		return nil, fmt.Errorf("%w: %s ends in its head", ErrCorrupt, name)
	}
	if err := l.structAt(name, section.Off, &head); err != nil {
		return nil, err
	}
	if elf.CompressionType(head.Type) != elf.COMPRESS_ZLIB {
		return nil, fmt.Errorf("%w: %s is compressed by %v", ErrUnsupported, name, elf.CompressionType(head.Type))
	}
	packed, err := l.bytes(name, section.Off+headBytes, section.Size-headBytes, limit)
	if err != nil {
		return nil, err
	}
	data, err := bounded.Inflate(name, packed, head.Size, limit)
	return data, unpacking(err)
}

// unpacking is an error of decompressing in the words of this package.
func unpacking(err error) error {
	switch {
	case errors.Is(err, bounded.ErrLimit):
		return fmt.Errorf("%w: %w", ErrUnsupported, err)
	case err != nil:
		return fmt.Errorf("%w: %w", ErrCorrupt, err)
	}
	return nil
}

func (l *layout) namedSection(name string) (elf.Section64, bool) {
	names, err := l.sectionNames()
	if err != nil {
		return elf.Section64{}, false
	}
	for _, s := range l.headers.sections {
		if string(text(names, uint64(s.Name))) == name {
			return s, true
		}
	}
	return elf.Section64{}, false
}

// sectionNames reads the string table of the section headers. Its index may
// not fit into the file header; then the first section header has it.
func (l *layout) sectionNames() ([]byte, error) {
	index := uint64(l.headers.file.Shstrndx)
	if index == uint64(elf.SHN_XINDEX) && len(l.headers.sections) > 0 {
		index = uint64(l.headers.sections[0].Link)
	}
	if index == 0 || index >= uint64(len(l.headers.sections)) {
		return nil, ErrNoSection
	}
	s := l.headers.sections[index]
	if elf.SectionType(s.Type) != elf.SHT_STRTAB || compressed(s) {
		return nil, fmt.Errorf("%w: section names", ErrCorrupt)
	}
	return l.load("section names", table{s.Off, s.Size})
}
