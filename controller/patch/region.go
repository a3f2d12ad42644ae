// SPDX-License-Identifier: Apache-2.0

package patch

import "fmt"

// PageBytes is the size of a page on x86-64.
const PageBytes = 4096

// Region is a stretch of a process' address space that is in use.
type Region struct {
	// Start and End enclose it; End is the first address behind.
	Start, End uint64
	// Grows tells where it will need room, and Room how much; less than 64 MiB
	// means 64 MiB.
	Grows Growth
	Room  uint64
	// Bare says that it is as memory for patches is mapped: private, of no file,
	// readable and executable, and without a name.
	Bare bool
}

// Growth is a direction.
type Growth int

// Where a region grows.
const (
	Fixed    Growth = iota
	Upward          // the heap that brk(2) moves
	Downward        // a stack
)

const (
	// growthRoom is the least that is left to what grows. A heap that meets a landing later is
	// no harm: the C library's malloc goes on elsewhere.
	growthRoom = 64 << 20
	// lowest is the least address that every kernel lets a program map
	// (vm.mmap_min_addr).
	lowest = 64 << 10
	// highest is where the address space of a program ends.
	highest = 1<<47 - PageBytes
)

// Placeable says why nothing must be mapped from start to end, if so.
func Placeable(start, end uint64, regions []Region) error {
	if start < lowest || end > highest || end <= start {
		return fmt.Errorf("%w: the jump leads to %#x, outside the address space", ErrUnpatchable, start)
	}
	for _, r := range regions {
		from, to, room := r.Start, r.End, max(r.Room, growthRoom)
		switch r.Grows {
		case Upward:
			to += room
		case Downward:
			from -= min(room, from)
		case Fixed:
		}
		if start < to && from < end {
			return fmt.Errorf("%w: the jump leads to %#x, where the process has memory or will need some", ErrUnpatchable, start)
		}
	}
	return nil
}
