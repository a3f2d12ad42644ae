// SPDX-License-Identifier: Apache-2.0

package patch

import (
	"fmt"
	"slices"
)

// Arena keeps account of a stretch of executable memory that holds landings
// and their pointers. What is taken is never given back: a thread may be in it.
type Arena struct {
	// Start and End enclose the stretch, in whole pages.
	Start, End uint64

	taken []span
}

type span struct{ start, end uint64 }

// pointerBytes is the size of a landing's pointer and its alignment.
const pointerBytes = 8

// Stretch is the memory that a landing needs, from start to end, in whole
// pages.
func Stretch(landing uint64) (start, end uint64) {
	start = landing &^ (PageBytes - 1)
	return start, (landing + LandingBytes + PageBytes - 1) &^ (PageBytes - 1)
}

// Unused says whether an arena with this content is one in which nothing was ever
// run: all is zero but the first pointer, which is written before its landing.
func Unused(content []byte) bool {
	landings := content[:max(0, len(content)-pointerBytes)]
	return !slices.ContainsFunc(landings, func(b byte) bool { return b != 0 })
}

// Holds says whether a landing lies in the arena.
func (a *Arena) Holds(landing uint64) bool {
	return landing >= a.Start && landing < a.End && a.End-landing >= LandingBytes
}

// Vacant says why a landing cannot be taken, if so.
func (a *Arena) Vacant(landing uint64) error {
	if !a.Holds(landing) || !a.free(span{landing, landing + LandingBytes}) {
		return fmt.Errorf("%w: the jump would lead into another patch's code at %#x", ErrUnpatchable, landing)
	}
	return nil
}

// Take takes the place of a landing and one for its pointer, the last that is
// free. Nothing is taken where there is an error.
func (a *Arena) Take(landing uint64) (pointer uint64, err error) {
	if err := a.Vacant(landing); err != nil {
		return 0, err
	}
	here := span{landing, landing + LandingBytes}
	for at := a.End - pointerBytes; at >= a.Start; at -= pointerBytes {
		there := span{at, at + pointerBytes}
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
