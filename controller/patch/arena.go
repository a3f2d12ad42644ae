// SPDX-License-Identifier: Apache-2.0

package patch

import (
	"fmt"
	"slices"
)

// PageBytes is the size of a page on x86-64.
const PageBytes = 4096

// Arena keeps account of a stretch of executable memory that holds landings
// and islands. What is taken is never given back: a thread may be in it.
type Arena struct {
	// Start and End enclose the stretch, in whole pages.
	Start, End uint64

	taken []span
}

type span struct{ start, end uint64 }

// Stretch is the memory that a landing needs, from start to end, in whole
// pages, and a page more for islands.
func Stretch(landing uint64) (start, end uint64) {
	start = landing &^ (PageBytes - 1)
	end = (landing + JumpBytes + PageBytes - 1) &^ (PageBytes - 1)
	return start, end + PageBytes
}

// Holds says whether a landing lies in the arena.
func (a *Arena) Holds(landing uint64) bool {
	return landing >= a.Start && landing < a.End && a.End-landing >= JumpBytes
}

// Take takes the place of a landing and one for its island, the last that is
// free: landings come from below. Nothing is taken where there is an error.
func (a *Arena) Take(landing uint64) (island uint64, err error) {
	here := span{landing, landing + JumpBytes}
	if !a.Holds(landing) || !a.free(here) {
		return 0, fmt.Errorf("%w: the jump would lead into another patch's code at %#x", ErrUnpatchable, landing)
	}
	for at := a.End - IslandBytes; at >= a.Start; at -= IslandBytes {
		there := span{at, at + IslandBytes}
		if a.free(there) && (there.end <= here.start || here.end <= there.start) {
			a.add(here)
			a.add(there)
			return at, nil
		}
	}
	return 0, fmt.Errorf("%w: no room for its code near %#x", ErrUnpatchable, landing)
}

func (a *Arena) free(s span) bool {
	return !slices.ContainsFunc(a.taken, func(t span) bool { return s.start < t.end && t.start < s.end })
}

func (a *Arena) add(s span) { a.taken = append(a.taken, s) }
