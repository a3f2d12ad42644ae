// SPDX-License-Identifier: Apache-2.0

package objfile

import "fmt"

// Code reads the first bytes of a function as the file has them, at most limit
// and no further than its segment.
func (f *File) Code(s Symbol, limit int) ([]byte, error) {
	p, ok := f.headers.segment(s.Value, 1)
	if !ok || !s.InFile || !s.Executable {
		return nil, fmt.Errorf("%w: no code of %s", ErrNoSymbol, s.Name)
	}
	size := min(uint64(limit), p.Vaddr+p.Filesz-s.Value)
	return f.bytes("code of "+s.Name, s.FileOffset, size, size)
}

// IsGo says whether the object holds Go code, whose functions run on small
// stacks that only Go code may use. A Go program without section headers is
// not recognised.
func (f *File) IsGo() bool {
	return f.HasSection(".gopclntab") || f.HasSection(".data.rel.ro.gopclntab")
}
