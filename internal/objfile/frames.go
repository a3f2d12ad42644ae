// SPDX-License-Identifier: Apache-2.0

package objfile

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/attune-hpc/attune/internal/callframe"
)

// Frame is a stretch of code of which .eh_frame tells how to unwind it: a
// function, or a part of one that lies elsewhere. Stripping leaves it.
type Frame struct {
	// Start and End enclose it, virtual addresses.
	Start, End uint64
	// Entry says that at Start the stack is as a call leaves it. Else the code
	// is a part of a function that has its stack frame already.
	Entry bool

	back uint32 // so many before it, in Frames, may reach beyond its Start
}

// Frames are the stretches of a file, in ascending order.
type Frames []Frame

// Holding finds the stretch that holds an address.
func (f Frames) Holding(address uint64) (Frame, bool) {
	i := f.before(address)
	if i == len(f) || f[i].Start != address {
		i--
	}
	if i < 0 || address >= f[i].End {
		return Frame{}, false
	}
	return f[i], true
}

// Between returns those that have something between two addresses.
func (f Frames) Between(start, end uint64) (some Frames) {
	first := f.before(start)
	if first > 0 {
		first -= 1 + int(f[first-1].back)
	}
	for _, frame := range f[first:max(first, f.before(end))] {
		if frame.End > start {
			some = append(some, frame)
		}
	}
	return some
}

// before is how many start before an address.
func (f Frames) before(address uint64) int {
	n, _ := slices.BinarySearchFunc(f, address, func(f Frame, address uint64) int { return cmp.Compare(f.Start, address) })
	return n
}

// settle puts them in order.
func (f Frames) settle() {
	slices.SortFunc(f, func(a, b Frame) int { return cmp.Compare(a.Start, b.Start) })
	first := 0
	for i := range f {
		for first < i && f[first].End <= f[i].Start {
			first++
		}
		f[i].back = uint32(i - first)
	}
}

// parseFrames parses the section that lies at an address.
func parseFrames(section []byte, address uint64) (frames Frames, err error) {
	err = callframe.Each(section, address, func(e callframe.Entry) {
		frames = append(frames, Frame{Start: e.Start, End: e.End, Entry: e.AsCalled()})
	})
	switch {
	case errors.Is(err, callframe.ErrUnsupported):
		return nil, fmt.Errorf("%w: %w", ErrUnsupported, err)
	case err != nil:
		return nil, fmt.Errorf("%w: %w", ErrCorrupt, err)
	}
	frames.settle()
	return frames, nil
}
