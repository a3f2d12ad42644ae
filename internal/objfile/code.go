// SPDX-License-Identifier: Apache-2.0

package objfile

import (
	"debug/elf"
	"fmt"
)

// Code reads the first bytes of a function as the file has them, at most limit
// and no further than its segment.
func (f *File) Code(s Symbol, limit int) ([]byte, error) {
	if !s.InFile || !s.Executable {
		return nil, fmt.Errorf("%w: no code of %s", ErrNoSymbol, s.Name)
	}
	return f.CodeAt(s.Value, limit)
}

// CodeAt is Code for any virtual address of the object's code. [ErrNoSymbol]
// where it has none.
func (l *layout) CodeAt(address uint64, limit int) ([]byte, error) {
	p, ok := l.headers.segment(address, 1)
	if !ok || elf.ProgFlag(p.Flags)&elf.PF_X == 0 || address-p.Vaddr >= p.Filesz {
		return nil, fmt.Errorf("%w: no code at %#x", ErrNoSymbol, address)
	}
	size := min(uint64(limit), p.Vaddr+p.Filesz-address)
	return l.bytes(fmt.Sprintf("code at %#x", address), p.Off+address-p.Vaddr, size, size)
}

// IsGo says whether the object holds Go code, whose functions run on small
// stacks that only Go code may use. A Go program without section headers is
// not recognised.
func (l *layout) IsGo() bool {
	return l.HasSection(".gopclntab") || l.HasSection(".data.rel.ro.gopclntab")
}
