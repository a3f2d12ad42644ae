// SPDX-License-Identifier: Apache-2.0

package dwarfinfo

import (
	"debug/dwarf"
	"fmt"

	"github.com/attune-hpc/attune/internal/bounded"
	"github.com/attune-hpc/attune/internal/objfile"
)

const (
	// maxTypes bounds the types that lead to one another: debug/dwarf recurses from
	// each into the next, some kilobytes of stack each, and a stack that is full ends
	// the program.
	maxTypes = 1 << 15
	// maxMembers bounds the members of all of them, with what is within them.
	maxMembers = 1 << 20
	// maxDimensions of an array.
	maxDimensions = 64
)

// types are those that were found to be sound.
type types struct {
	// sizes has, for each, the type that its size depends on; 0: on none.
	sizes   map[dwarf.Offset]dwarf.Offset
	members *bounded.Work
}

func newTypes(file string) types {
	return types{make(map[dwarf.Offset]dwarf.Offset), bounded.NewWork("types in "+file, maxMembers)}
}

// checkType looks at all that a type leads to before debug/dwarf does.
func (i *Info) checkType(start dwarf.Offset) error {
	var fresh []dwarf.Offset
	for next := []dwarf.Offset{start}; len(next) > 0; {
		offset := next[len(next)-1]
		next = next[:len(next)-1]
		if _, known := i.types.sizes[offset]; known {
			continue
		}
		if len(i.types.sizes) == maxTypes {
			return fmt.Errorf("%w: more than %d types lead to one another", bounded.ErrLimit, maxTypes)
		}
		depends, leads, err := i.readType(offset)
		if err != nil {
			return err
		}
		i.types.sizes[offset] = depends
		fresh, next = append(fresh, offset), append(next, leads...)
	}
	for _, offset := range fresh {
		if err := i.checkSize(offset); err != nil {
			return err
		}
	}
	return nil
}

// checkSize refuses types whose size depends on themselves.
func (i *Info) checkSize(offset dwarf.Offset) error {
	const deepest = 4 * maxDepth
	for range deepest {
		if offset = i.types.sizes[offset]; offset == 0 {
			return nil
		}
	}
	return fmt.Errorf("%w: a type leads to itself, or over more than %d others", objfile.ErrCorrupt, deepest)
}

// readType reads an entry: the type that its size depends on, and all that it and its
// children lead to.
func (i *Info) readType(offset dwarf.Offset) (depends dwarf.Offset, leads []dwarf.Offset, err error) {
	r := i.data.Reader()
	r.Seek(offset)
	e, err := i.next(r)
	if err != nil || e == nil {
		return 0, nil, err
	}
	if to, ok := e.Val(dwarf.AttrType).(dwarf.Offset); ok {
		leads = append(leads, to)
		switch e.Tag {
		case dwarf.TagTypedef, dwarf.TagConstType, dwarf.TagVolatileType, dwarf.TagRestrictType, dwarf.TagArrayType:
			depends = to
		}
	}
	dimensions := 0
	for depth := 0; e.Children && depth >= 0; {
		child, err := i.next(r)
		if err == nil {
			err = i.types.members.Spend(1)
		}
		if err != nil || child == nil {
			return 0, nil, err
		}
		if child.Tag == 0 {
			depth--
			continue
		}
		if to, ok := child.Val(dwarf.AttrType).(dwarf.Offset); ok && depth == 0 {
			leads = append(leads, to)
		}
		if dimensions++; e.Tag == dwarf.TagArrayType && dimensions > maxDimensions {
			return 0, nil, fmt.Errorf("%w: an array of more than %d dimensions", bounded.ErrLimit, maxDimensions)
		}
		if child.Children {
			depth++
		}
	}
	return depends, leads, nil
}
