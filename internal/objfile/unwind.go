// SPDX-License-Identifier: Apache-2.0

package objfile

import (
	"debug/elf"
	"fmt"
)

// maxUnwind is how large a section .eh_frame is read.
const maxUnwind = 64 << 20

// Frames reads .eh_frame ([callframe]). [ErrNoSection]
// where there is none, [ErrUnsupported] for encodings of addresses that no
// compiler for x86-64 uses, [ErrCorrupt].
func (f *File) Frames() (Frames, error) {
	frames, err := f.frames.get(f.readFrames)
	if err != nil {
		return nil, err
	}
	return *frames, nil
}

func (f *File) readFrames() (*Frames, error) {
	section, err := f.Section(".eh_frame", maxUnwind)
	if err != nil {
		return nil, err
	}
	address, _, _ := f.SectionAddress(".eh_frame")
	frames, err := parseFrames(section, address)
	if err != nil {
		return nil, fmt.Errorf("%w: .eh_frame of %s", err, f.name)
	}
	return &frames, nil
}

// FrameIndex is where the index of the unwind information lies (.eh_frame_hdr), a
// virtual address. It is false where there is none.
func (l *layout) FrameIndex() (address uint64, ok bool) {
	for _, p := range l.headers.programs {
		if elf.ProgType(p.Type) == elf.PT_GNU_EH_FRAME {
			return p.Vaddr, true
		}
	}
	return 0, false
}
