// SPDX-License-Identifier: Apache-2.0

package objfile

import (
	"bytes"
	"slices"
)

// filter chooses names.
type filter struct {
	part  []byte // in every name that is wanted; empty: nothing is
	wants func(name []byte) bool
}

// spans are where names can begin that contain certain bytes, in ascending order. To
// search a whole table of names for these takes a tenth of looking at each name.
type spans struct {
	all  bool
	list []span
}

// span has the first and the last of the offsets.
type span struct{ first, last uint64 }

// begins finds where names begin that contain a part. No part, or one that is in
// most names, is no help.
func begins(names, part []byte) spans {
	if len(part) == 0 {
		return spans{all: true}
	}
	const most = 1 << 14
	var s spans
	for from, hits := 0, 0; ; hits++ {
		at := bytes.Index(names[from:], part)
		if at < 0 {
			return s
		}
		if hits == most {
			return spans{all: true}
		}
		at += from
		// No name is longer: one search for its beginning must not take all that is before.
		near := max(at-maxNameBytes, 0)
		first := near + bytes.LastIndexByte(names[near:at], 0) + 1
		if n := len(s.list); n > 0 && s.list[n-1].first == uint64(first) {
			s.list[n-1].last = uint64(at)
		} else {
			s.list = append(s.list, span{uint64(first), uint64(at)})
		}
		from = at + 1
	}
}

// has says whether the name that begins there may contain the part.
func (s spans) has(offset uint64) bool {
	if s.all {
		return true
	}
	_, found := slices.BinarySearchFunc(s.list, offset, func(one span, at uint64) int {
		switch {
		case one.last < at:
			return -1
		case one.first > at:
			return 1
		}
		return 0
	})
	return found
}
