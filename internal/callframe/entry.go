// SPDX-License-Identifier: Apache-2.0

package callframe

import (
	"encoding/binary"
	"fmt"
)

// Entry is what is said of a stretch of code: a function, or a part of one that lies
// elsewhere. It keeps no state, and is safe for concurrent use.
type Entry struct {
	// Start and End enclose the stretch.
	Start, End uint64

	common       *common
	instructions []byte
	at           uint64 // where they lie
}

// common is what several entries have in common.
type common struct {
	augmented bool // entries have augmentation data
	encoding  byte // of their addresses
	code      uint64
	data      int64 // by what advances and offsets are multiplied
	initial   row   // that each entry begins with
	err       error // why that is not known
}

// Bounds of a section: what they leave room for is many times what the largest programs
// known have, and is read within a second.
const (
	mostCommons = 1 << 16
	mostEntries = 1 << 21
)

// Each calls visit for each entry of a section that lies at an address, in the order
// in which they stand there.
func Each(section []byte, address uint64, visit func(Entry)) error {
	all := make(map[int]*common) // by offset
	entries := 0
	for at := 0; at+4 <= len(section); {
		length := int(binary.LittleEndian.Uint32(section[at:]))
		if length == 0 {
			break // the end
		}
		if length < 4 || length > len(section)-at-4 {
			return ErrCorrupt // or 64-bit DWARF, which is never used here
		}
		c := &cursor{left: section[at+4 : at+4+length], at: address + uint64(at) + 4}
		back := int(c.u32())
		if back == 0 {
			all[at] = readCommon(c)
		} else if info := all[at+4-back]; info == nil {
			return ErrCorrupt
		} else if e := readEntry(c, info); c.err == nil && e.End > e.Start {
			entries++
			visit(e)
		}
		if len(all) > mostCommons || entries > mostEntries {
			return fmt.Errorf("%w: more than %d entries, or %d that others have in common", ErrUnsupported, mostEntries, mostCommons)
		}
		if c.err != nil {
			return c.err
		}
		at += 4 + length
	}
	return nil
}

// returnAddress is the number of what holds where a frame returns to.
const returnAddress = 16

// readCommon reads a CIE, behind the word that tells it from an entry.
func readCommon(c *cursor) *common {
	version := c.byte()
	augmentation := c.text()
	info := &common{code: c.uleb(), data: c.sleb()}
	var register uint64
	if version == 1 {
		register = uint64(c.byte())
	} else {
		register = c.uleb()
	}
	if register != returnAddress {
		c.fail(fmt.Errorf("%w: the return address is register %d", ErrUnsupported, register))
	}
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
			c.pointer(c.byte())
		case letter == 'S', letter == 'B':
		default:
			c.fail(fmt.Errorf("%w: augmentation %q", ErrUnsupported, augmentation))
		}
	}
	info.begin(c)
	return info
}

// begin executes the instructions that all entries begin with, once: an attacker's are
// long, and have a million entries.
func (info *common) begin(c *cursor) {
	m := &machine{common: info, cursor: cursor{left: c.left, at: c.at}}
	m.until(0)
	if m.address != 0 {
		m.fail(ErrCorrupt) // they hold for no address
	}
	info.initial, info.err = m.row, m.err
}

// readEntry reads an FDE, behind the word that leads to what it has in common.
func readEntry(c *cursor, info *common) Entry {
	start := c.pointer(info.encoding)
	size := c.pointer(info.encoding & encodingFormat)
	if info.augmented {
		c.take(c.uleb())
	}
	return Entry{Start: start, End: start + size, common: info, instructions: c.left, at: c.at}
}

// AsCalled says whether at its start the stack is as a call leaves it. Else the code is
// a part of a function that has its stack frame already, or one of which that is not
// known.
func (e Entry) AsCalled() bool {
	r, err := e.row(e.Start)
	return err == nil && r.frame == (rule{inRegister, stackPointer, wordBytes})
}
