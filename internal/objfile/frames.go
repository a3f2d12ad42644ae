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
}

// Frames are the stretches of a file, in ascending order.
type Frames []Frame

// Holding finds the stretch that holds an address.
func (f Frames) Holding(address uint64) (Frame, bool) {
	i, found := slices.BinarySearchFunc(f, address, func(f Frame, address uint64) int { return cmp.Compare(f.Start, address) })
	if !found {
		i--
	}
	if i < 0 || address >= f[i].End {
		return Frame{}, false
	}
	return f[i], true
}

// Between returns those that have something between two addresses.
func (f Frames) Between(start, end uint64) (some Frames) {
	for _, frame := range f {
		if frame.Start < end && start < frame.End {
			some = append(some, frame)
		}
	}
	return some
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
	slices.SortFunc(frames, func(a, b Frame) int { return cmp.Compare(a.Start, b.Start) })
	return frames, nil
}
