// SPDX-License-Identifier: Apache-2.0

package patch

import (
	"errors"
	"fmt"
)

// WindowBytes is the size of a Window and its alignment: what one byte of an
// address, the second, can choose from.
const WindowBytes = 256 * SlotBytes

// Window keeps account of executable memory that holds programs. All the
// programs between which a pointer is to be changed in one go lie in one
// window: their addresses differ in a single byte. What is taken is never given
// back: a thread may be in it.
type Window struct {
	// Start of the window.
	Start uint64

	taken uint64 // slots, from the first on
}

// ErrFull means that a window has no room.
var ErrFull = errors.New("no room for another program")

// Take takes room for so many bytes and returns its address.
func (w *Window) Take(bytes int) (address uint64, err error) {
	slots := uint64(bytes+SlotBytes-1) / SlotBytes
	if w.taken+slots > WindowBytes/SlotBytes {
		return 0, ErrFull
	}
	address = w.Start + w.taken*SlotBytes
	w.taken += slots
	return address, nil
}

// Free is how many bytes can be taken.
func (w *Window) Free() int { return int(WindowBytes - w.taken*SlotBytes) }

// Reaches says whether code in the window can jump to code and data within so
// many bytes around an address.
func (w *Window) Reaches(address, around uint64) bool {
	from, to := min(w.Start, address), max(w.Start+WindowBytes, address)
	return to-from+around < reach
}

// reach is how far a jump goes, with something to spare.
const reach = 1<<31 - 1<<20

// WindowNear finds where a window can be mapped, as near to an address as
// memory that is in use allows.
func WindowNear(address, around uint64, regions []Region) (start uint64, err error) {
	at := address &^ (WindowBytes - 1)
	for step := uint64(WindowBytes); step+around < reach; step += WindowBytes {
		for _, start := range []uint64{at - step, at + step} {
			if start < address+reach && Placeable(start, start+WindowBytes, regions) == nil {
				return start, nil
			}
		}
	}
	return 0, fmt.Errorf("%w: no free memory within 2 GiB of it", ErrUnpatchable)
}
