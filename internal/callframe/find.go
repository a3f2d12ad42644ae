// SPDX-License-Identifier: Apache-2.0

package callframe

import (
	"encoding/binary"
	"fmt"
	"sort"
)

// The index, .eh_frame_hdr (LSB 5.0, 10.7), is a table in ascending order of where
// code starts and where its entry is, both 32 bits from the index.
const (
	indexBytes     = 12
	indexRow       = 8
	indexVersion   = 1
	encodingCount  = encodingUnsign4
	encodingOffset = 0x30 | encodingSigned4
	// mostEntry and mostCommon bound what is read for one stretch of code; gcc's greatest
	// functions have some kilobytes.
	mostEntry  = 64 << 10
	mostCommon = 1 << 10
)

// Find finds the entry that holds an instruction, in memory, by the index that lies at an
// address. [ErrNone], [ErrCorrupt], [ErrUnsupported], or read's error.
func Find(read Read, index, instruction uint64) (Entry, error) {
	head := make([]byte, indexBytes)
	if err := read(index, head); err != nil {
		return Entry{}, err
	}
	if head[0] != indexVersion || head[2] != encodingCount || head[3] != encodingOffset {
		return Entry{}, fmt.Errorf("%w: an index of version %d, encodings %#x", ErrUnsupported, head[0], head[1:4])
	}
	rows := int(binary.LittleEndian.Uint32(head[8:]))
	var failed error
	at := func(i int) (start, entry uint64) {
		var row [indexRow]byte
		if err := read(index+indexBytes+indexRow*uint64(i), row[:]); err != nil {
			failed = err
		}
		return index + relative(row[:]), index + relative(row[4:])
	}
	after := sort.Search(rows, func(i int) bool {
		start, _ := at(i)
		return start > instruction
	})
	if failed != nil {
		return Entry{}, failed
	}
	if after == 0 {
		return Entry{}, ErrNone
	}
	_, entry := at(after - 1)
	if failed != nil {
		return Entry{}, failed
	}
	return entryAt(read, entry, instruction)
}

func relative(b []byte) uint64 { return uint64(int64(int32(binary.LittleEndian.Uint32(b)))) }

// entryAt reads an entry and what it has in common with others.
func entryAt(read Read, at, instruction uint64) (Entry, error) {
	c, err := pieceAt(read, at, mostEntry)
	if err != nil {
		return Entry{}, err
	}
	link := c.at
	back := uint64(c.u32())
	shared, err := pieceAt(read, link-back, mostCommon)
	if err != nil {
		return Entry{}, err
	}
	if shared.u32() != 0 {
		return Entry{}, ErrCorrupt
	}
	e := readEntry(c, readCommon(shared))
	switch {
	case shared.err != nil:
		return Entry{}, shared.err
	case c.err != nil:
		return Entry{}, c.err
	case instruction < e.Start || instruction >= e.End:
		return Entry{}, ErrNone
	}
	return e, nil
}

// pieceAt reads what stands behind its length.
func pieceAt(read Read, at uint64, most uint32) (*cursor, error) {
	var word [4]byte
	if err := read(at, word[:]); err != nil {
		return nil, err
	}
	length := binary.LittleEndian.Uint32(word[:])
	if length < 4 || length > most {
		return nil, ErrCorrupt
	}
	c := &cursor{left: make([]byte, length), at: at + 4}
	return c, read(c.at, c.left)
}
