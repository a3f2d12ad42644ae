// SPDX-License-Identifier: Apache-2.0

package hidden

import (
	"bytes"
	"errors"
	"fmt"
)

// ErrNotUnique says that no place, or more than one, followed what the object
// was told.
var ErrNotUnique = errors.New("no single word of its data follows the value")

// data is a writable part of an object as one process has it.
type data struct {
	// start is its virtual address in the file's own numbering.
	start   uint64
	content []byte
}

// places returns the virtual addresses of all words of the parts that hold
// what is looked for, aligned to its size, and lie in the window.
func places(parts []data, want []byte, window span) []uint64 {
	var found []uint64
	size := uint64(len(want))
	for _, part := range parts {
		first := (part.start + size - 1) &^ (size - 1)
		for at := first; at+size <= part.start+uint64(len(part.content)); at += size {
			offset := at - part.start
			if window.has(at) && bytes.Equal(part.content[offset:offset+size], want) {
				found = append(found, at)
			}
		}
	}
	return found
}

// span of virtual addresses; the zero value is all.
type span struct{ start, end uint64 }

func (s span) has(address uint64) bool {
	return s == span{} || address >= s.start && address < s.end
}

// common is what the places of all runs have in common: one, or an error.
func common(runs [][]uint64) (uint64, error) {
	seen := make(map[uint64]int)
	for _, run := range runs {
		for _, at := range run {
			seen[at]++
		}
	}
	var all []uint64
	for at, n := range seen {
		if n == len(runs) {
			all = append(all, at)
		}
	}
	if len(all) != 1 {
		return 0, fmt.Errorf("%w: %d do", ErrNotUnique, len(all))
	}
	return all[0], nil
}
