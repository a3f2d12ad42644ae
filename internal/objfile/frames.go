// SPDX-License-Identifier: Apache-2.0

package objfile

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
)

// Frame is a stretch of code of which .eh_frame tells how to unwind it: a
// function, or a part of one that lies elsewhere. Stripping leaves it.
type Frame struct {
	// Start and End enclose it, virtual addresses.
	Start, End uint64
	// Entry says that at Start the stack is as a call leaves it. Else the code
	// is a part of a function that has its stack frame already.
	Entry bool
}

// Frames are the stretches of a file, in ascending order.
type Frames []Frame

// Holding finds the stretch that holds an address.
func (f Frames) Holding(address uint64) (Frame, bool) {
	i, found := slices.BinarySearchFunc(f, address, func(f Frame, address uint64) int { return cmp.Compare(f.Start, address) })
	if !found {
		i--
	}
	if i < 0 || address >= f[i].End {
		return Frame{}, false
	}
	return f[i], true
}

// Between returns those that have something between two addresses.
func (f Frames) Between(start, end uint64) (some Frames) {
	for _, frame := range f {
		if frame.Start < end && start < frame.End {
			some = append(some, frame)
		}
	}
	return some
}

// maxUnwind is how large a section .eh_frame is read.
const maxUnwind = 64 << 20

// Frames reads .eh_frame (System V psABI, 4.2.4; DWARF 5, 6.4). [ErrNoSection]
// where there is none, [ErrUnsupported] for encodings of addresses that no
// compiler for x86-64 uses, [ErrCorrupt].
func (f *File) Frames() (Frames, error) {
	frames, err := f.tables.frames.get(f.readFrames)
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

// parseFrames parses the section that lies at an address.
func parseFrames(section []byte, address uint64) (frames Frames, err error) {
	u := unwindTable{section: section, address: address, common: make(map[int]common)}
	for at := 0; at+4 <= len(section); {
		length := int(binary.LittleEndian.Uint32(section[at:]))
		if length == 0 {
			break // the end
		}
		if length < 4 || length > len(section)-at-4 {
			return nil, ErrCorrupt // or 64-bit DWARF, which is never used here
		}
		entry := cursor{section[at+4 : at+4+length], at + 4, nil}
		back := int(entry.u32())
		if back == 0 {
			u.common[at], err = u.readCommon(&entry)
		} else {
			frames, err = u.readFrame(&entry, u.common[at+4-back], frames)
		}
		if err != nil {
			return nil, err
		}
		at += 4 + length
	}
	slices.SortFunc(frames, func(a, b Frame) int { return cmp.Compare(a.Start, b.Start) })
	return frames, nil
}

// unwindTable is a section .eh_frame.
type unwindTable struct {
	section []byte
	address uint64
	common  map[int]common // by offset
}

// common is a CIE: what several frames have in common.
type common struct {
	augmented bool // frames have augmentation data
	encoding  byte // of their addresses
	entry     bool // before their own instructions the stack is as a call leaves it
}

// Encodings of pointers (LSB 5.0, 10.5.1).
const (
	encodingFormat  = 0x0f
	encodingWord    = 0x00
	encodingUnsign4 = 0x03
	encodingUnsign8 = 0x04
	encodingSigned4 = 0x0b
	encodingSigned8 = 0x0c
	encodingRelPC   = 0x10
)

func (u unwindTable) readCommon(c *cursor) (common, error) {
	version := c.byte()
	augmentation := c.text()
	c.uleb() // code alignment
	c.uleb() // data alignment
	if version == 1 {
		c.byte() // return address register
	} else {
		c.uleb()
	}
	var info common
	for i, letter := range augmentation {
		switch {
		case letter == 'z' && i == 0:
			info.augmented = true
			c.uleb()
		case letter == 'R':
			info.encoding = c.byte()
		case letter == 'L':
			c.byte()
		case letter == 'P':
			u.pointer(c, c.byte())
		case letter == 'S', letter == 'B':
		default:
			return info, fmt.Errorf("%w: augmentation %q", ErrUnsupported, augmentation)
		}
	}
	info.entry = c.entry(false)
	return info, c.err
}

func (u unwindTable) readFrame(c *cursor, info common, frames Frames) (Frames, error) {
	start := u.pointer(c, info.encoding)
	size := u.pointer(c, info.encoding&encodingFormat)
	if info.augmented {
		c.skip(int(c.uleb()))
	}
	if c.err == nil && size > 0 {
		frames = append(frames, Frame{Start: start, End: start + size, Entry: c.entry(info.entry)})
	}
	return frames, c.err
}

// pointer reads an address.
func (u unwindTable) pointer(c *cursor, encoding byte) (value uint64) {
	from := u.address + uint64(c.offset)
	switch encoding & encodingFormat {
	case encodingWord, encodingUnsign8, encodingSigned8:
		value = c.u64()
	case encodingUnsign4:
		value = uint64(c.u32())
	case encodingSigned4:
		value = uint64(int64(int32(c.u32())))
	default:
		c.fail(ErrUnsupported)
	}
	if encoding&^(encodingFormat|0x80)&encodingRelPC != 0 {
		value += from
	}
	return value
}

// cursor reads what is left of an entry, which is at an offset in the section.
// After an error all is zero.
type cursor struct {
	left   []byte
	offset int
	err    error
}

func (c *cursor) fail(err error) {
	c.err = errors.Join(c.err, err)
	c.left = nil
}

// take takes bytes; zeros behind the end.
func (c *cursor) take(n int) []byte {
	if n < 0 || n > len(c.left) {
		c.fail(ErrCorrupt)
		return make([]byte, 8)
	}
	taken := c.left[:n]
	c.left, c.offset = c.left[n:], c.offset+n
	return taken
}

func (c *cursor) skip(n int)  { c.take(n) }
func (c *cursor) byte() byte  { return c.take(1)[0] }
func (c *cursor) u32() uint32 { return binary.LittleEndian.Uint32(c.take(4)) }
func (c *cursor) u64() uint64 { return binary.LittleEndian.Uint64(c.take(8)) }

func (c *cursor) uleb() (value uint64) {
	for shift := 0; c.err == nil && shift < 64; shift += 7 {
		b := c.byte()
		value |= uint64(b&0x7f) << shift
		if b&0x80 == 0 {
			break
		}
	}
	return value
}

func (c *cursor) text() string {
	n := slices.Index(c.left, 0)
	if n < 0 {
		c.fail(ErrCorrupt)
		return ""
	}
	return string(c.take(n + 1)[:n])
}

// Instructions of call frames (DWARF 5, 7.24) that tell the canonical frame
// address.
const (
	cfaDefine       = 0x0c
	cfaDefineReg    = 0x0d
	cfaDefineOffset = 0x0e
	cfaNothing      = 0x00
)

// Registers and offset of the stack at the entry of a function.
const (
	stackPointer = 7
	atEntry      = 8
)

// entry executes the instructions for the first address, and says whether the
// stack is as a call leaves it. before is what it was. Unknown ones say no.
func (c *cursor) entry(before bool) bool {
	register, offset := uint64(0), uint64(0)
	if before {
		register, offset = stackPointer, atEntry
	}
	for len(c.left) > 0 && c.err == nil {
		switch op := c.byte(); {
		case op == cfaNothing:
		case op>>6 == 2: // where a register is kept
			c.uleb()
		case op == cfaDefine:
			register, offset = c.uleb(), c.uleb()
		case op == cfaDefineReg:
			register = c.uleb()
		case op == cfaDefineOffset:
			offset = c.uleb()
		case op >= 2 && op <= 4 || op>>6 == 1: // the next address
			return register == stackPointer && offset == atEntry
		default:
			return false
		}
	}
	return register == stackPointer && offset == atEntry
}
