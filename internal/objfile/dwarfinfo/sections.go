// SPDX-License-Identifier: Apache-2.0

package dwarfinfo

import (
	"bytes"
	"debug/dwarf"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/attune-hpc/attune/internal/bounded"
	"github.com/attune-hpc/attune/internal/objfile"
)

// Bounds of what debug/dwarf is given, which allocates and recurses as the file says.
const (
	// maxBytes bounds all sections together, decompressed.
	maxBytes = 512 << 20
	// maxRanges bounds each section of ranges: an entry of three bytes becomes sixteen.
	maxRanges = 32 << 20
	// maxAbbreviations bounds .debug_abbrev, and maxAttributes what all its tables
	// become (24 bytes each), a table counted for each offset at which a unit has it.
	maxAbbreviations = 64 << 20
	maxAttributes    = 8 << 20
	// maxOfEntry bounds the attributes of one entry; compilers write thirty.
	maxOfEntry = 256
	// maxUnits: chromium has 40,000.
	maxUnits = 1 << 18
	// maxText is the longest name, of which each entry that refers to it gets a copy.
	maxText = 256 << 10
)

// sections are those that types and addresses need. Line tables are left out.
type sections map[string][]byte

func loadSections(f *objfile.File) (sections, error) {
	all := make(sections)
	left := uint64(maxBytes)
	limits := map[string]uint64{"ranges": maxRanges, "rnglists": maxRanges, "abbrev": maxAbbreviations}
	for _, name := range []string{"abbrev", "info", "str", "ranges", "addr", "line_str", "rnglists", "str_offsets"} {
		limit := left
		if own, ok := limits[name]; ok {
			limit = min(limit, own)
		}
		content, err := f.Section(".debug_"+name, limit)
		if err != nil && !errors.Is(err, objfile.ErrNoSection) {
			return nil, err
		}
		all[name] = content
		left -= uint64(len(content))
	}
	if all["info"] == nil {
		return nil, fmt.Errorf("%w in %s", ErrNoDebugInfo, f.Name())
	}
	return all, nil
}

// check refuses what debug/dwarf would not survive, and returns where the first entry
// of each unit is.
func (s sections) check() (units []dwarf.Offset, err error) {
	for _, name := range []string{"str", "line_str"} {
		if err := checkTexts(s[name]); err != nil {
			return nil, err
		}
	}
	units, tables, err := readUnits(s["info"])
	if err != nil {
		return nil, err
	}
	work := bounded.NewWork("the table of abbreviations", maxAttributes)
	for table := range tables {
		if table > uint64(len(s["abbrev"])) {
			return nil, fmt.Errorf("%w: abbreviations beyond their section", objfile.ErrCorrupt)
		}
		if err := checkAbbreviations(s["abbrev"][table:], work); err != nil {
			return nil, err
		}
	}
	return units, nil
}

// checkTexts looks for a text that is too long.
func checkTexts(section []byte) error {
	for len(section) > 0 {
		end := bytes.IndexByte(section, 0)
		if end < 0 {
			end = len(section)
		}
		if end > maxText {
			return fmt.Errorf("%w: a name of %d bytes exceeds %d", bounded.ErrLimit, end, maxText)
		}
		section = section[min(end+1, len(section)):]
	}
	return nil
}

// readUnits walks over the headers of the units (DWARF 5, 7.5.1): where their first
// entries are, and at which offsets they have tables of abbreviations.
func readUnits(info []byte) (units []dwarf.Offset, tables map[uint64]bool, err error) {
	tables = make(map[uint64]bool)
	for at := 0; at < len(info); {
		c := cursor{info, at}
		length, wide := uint64(c.u32()), false
		if length == 0xffffffff {
			length, wide = c.u64(), true
		}
		end := uint64(c.at) + length
		if length > uint64(len(info)) || end > uint64(len(info)) {
			return nil, nil, fmt.Errorf("%w: a unit ends beyond its section", objfile.ErrCorrupt)
		}
		if length > 0 {
			first, table := c.unit(wide)
			units, tables[table] = append(units, dwarf.Offset(first)), true
		}
		if len(units) > maxUnits {
			return nil, nil, fmt.Errorf("%w: more than %d units of debug information", bounded.ErrLimit, maxUnits)
		}
		at = int(end)
	}
	return units, tables, nil
}

// cursor reads from a place on; zeros behind the end.
type cursor struct {
	data []byte
	at   int
}

func (c *cursor) take(n int) []byte {
	var taken [8]byte
	if c.at < len(c.data) {
		copy(taken[:n], c.data[c.at:])
	}
	c.at += n
	return taken[:]
}

func (c *cursor) u8() byte    { return c.take(1)[0] }
func (c *cursor) u16() uint16 { return binary.LittleEndian.Uint16(c.take(2)) }
func (c *cursor) u32() uint32 { return binary.LittleEndian.Uint32(c.take(4)) }
func (c *cursor) u64() uint64 { return binary.LittleEndian.Uint64(c.take(8)) }

// unit reads the header of a unit behind its length.
func (c *cursor) unit(wide bool) (first int, table uint64) {
	const skeleton, splitCompile, typeUnit, splitType = 4, 5, 2, 6
	offset := func() uint64 {
		if wide {
			return c.u64()
		}
		return uint64(c.u32())
	}
	if version := c.u16(); version < 5 {
		table = offset()
		c.u8() // size of an address
		return c.at, table
	}
	kind := c.u8()
	c.u8() // size of an address
	table = offset()
	switch kind {
	case skeleton, splitCompile:
		c.u64()
	case typeUnit, splitType:
		c.u64()
		offset()
	}
	return c.at, table
}

// checkAbbreviations walks over one table, as debug/dwarf does, which keeps 32 bits of
// codes and forms.
func checkAbbreviations(table []byte, work *bounded.Work) error {
	const implicitConst = 0x21
	n := numbers{data: table}
	for {
		code, ok := n.next()
		if !ok || uint32(code) == 0 {
			return n.err // or cut off, which debug/dwarf says
		}
		n.next() // tag
		if len(n.data) > 0 {
			n.data = n.data[1:] // whether it has children
		}
		count := 0
		for ; ; count++ {
			attribute, _ := n.next()
			form, ok := n.next()
			if !ok || attribute == 0 && form == 0 {
				break
			}
			if format := uint32(form); format == implicitConst {
				n.next()
			}
			if count == maxOfEntry {
				return fmt.Errorf("%w: entries of more than %d attributes", bounded.ErrLimit, maxOfEntry)
			}
		}
		const itself = 4 // what an abbreviation takes beside its attributes
		if err := work.Spend(itself + count); err != nil {
			return err
		}
	}
}

// numbers are of variable length (LEB128), one after the other.
type numbers struct {
	data []byte
	err  error
}

// next takes one off; false at the end, and at one that has more bytes than 64 bits need.
func (n *numbers) next() (value uint64, ok bool) {
	for i, b := range n.data[:min(len(n.data), binary.MaxVarintLen64)] {
		value |= uint64(b&0x7f) << (7 * i)
		if b&0x80 == 0 {
			n.data = n.data[i+1:]
			return value, true
		}
	}
	if len(n.data) > binary.MaxVarintLen64 {
		n.err = fmt.Errorf("%w: a number of more than %d bytes", objfile.ErrCorrupt, binary.MaxVarintLen64)
	}
	n.data = nil
	return 0, false
}
