// SPDX-License-Identifier: Apache-2.0

package dwarfinfo

import (
	"debug/dwarf"
	"errors"
	"fmt"

	"github.com/attune-hpc/attune/internal/bounded"
	"github.com/attune-hpc/attune/internal/objfile"
)

// Errors of looking things up.
var (
	// ErrNoDebugInfo says that neither the file nor a separate debug file
	// here has DWARF.
	ErrNoDebugInfo = errors.New("no debug information")
	// ErrUnsupported says that it is of a kind that is not read: split DWARF
	// (-gsplit-dwarf), or shared with other files by dwz.
	ErrUnsupported = errors.New("unsupported debug information")
	// ErrNotFound says that it does not know the name.
	ErrNotFound = errors.New("not in the debug information")
)

// maxWork bounds the entries that one look-up reads, with their attributes and text:
// five million usual entries, some seconds. maxTotal bounds those of all that an Info is asked.
const (
	maxWork  = 64 << 20
	maxTotal = 8 * maxWork
)

// Info is the debug information of a file.
type Info struct {
	file *objfile.File
	data *dwarf.Data
	// units are where the first entry of each is.
	units []dwarf.Offset
	size  int           // of the entries, bytes
	ends  int           // of lists of entries, read one after the other
	work  *bounded.Work // of the look-up under way
	total *bounded.Work
	types types
}

// Open reads the debug sections of a file, or else of its separate debug file.
// The file stays the caller's and must stay open. [ErrNoDebugInfo], with the
// reason; [ErrUnsupported]; what [objfile.File.Section] returns.
func Open(f *objfile.File) (*Info, error) {
	source := f
	if !f.HasSection(".debug_info") {
		debug, err := f.DebugFile()
		if err != nil {
			return nil, fmt.Errorf("%w in %s: %w; compile with -g or install its debug symbols", ErrNoDebugInfo, f.Name(), err)
		}
		defer func() { _ = debug.Close() }() // read only
		source = debug
	}
	if err := f.GivenUp(); err != nil {
		return nil, err
	}
	i := &Info{file: f, total: bounded.NewWork("all look-ups in "+f.Name(), maxTotal), types: newTypes(f.Name())}
	i.begin()
	if err := i.done(i.read(source)); err != nil {
		return nil, err
	}
	return i, nil
}

// begin starts a look-up.
func (i *Info) begin() { i.work = bounded.NewWork("a look-up in "+i.file.Name(), maxWork) }

// done ends a look-up: an error in the words of [objfile], which remembers a file that is
// not to be tried again.
func (i *Info) done(err error) error {
	if spent := i.total.Spend(i.work.Spent()); spent != nil {
		return errors.Join(err, fmt.Errorf("%w: %w", ErrUnsupported, spent))
	}
	if errors.Is(err, bounded.ErrLimit) {
		return i.file.GiveUp(fmt.Errorf("%w: %w: %w", ErrUnsupported, objfile.ErrUnsupported, err))
	}
	return err
}

func (i *Info) read(f *objfile.File) (err error) {
	defer guard(&err)
	s, err := loadSections(f)
	if err != nil {
		return err
	}
	if i.units, err = s.check(); err != nil {
		return err
	}
	i.size = len(s["info"])
	i.data, err = dwarf.New(s["abbrev"], nil, nil, s["info"], nil, nil, s["ranges"], s["str"])
	if err != nil {
		return fmt.Errorf("%w: %s: %w", objfile.ErrCorrupt, f.Name(), err)
	}
	for _, name := range []string{"addr", "line_str", "rnglists", "str_offsets"} {
		if err := i.data.AddSection(".debug_"+name, s[name]); err != nil {
			return fmt.Errorf("%w: %s: %w", objfile.ErrCorrupt, f.Name(), err)
		}
	}
	return nil
}

// guard turns a panic of debug/dwarf into an error: it was written for files
// of one's own compiler.
func guard(err *error) {
	if broken := recover(); broken != nil {
		*err = fmt.Errorf("%w: debug information: %v", objfile.ErrCorrupt, broken)
	}
}

// splitUnit says whether a unit is the skeleton of one in a .dwo file.
func splitUnit(unit *dwarf.Entry) bool {
	const tagSkeleton, attrDwoName, attrGNUDwoName = 0x4a, 0x76, 0x2130
	return unit.Tag == tagSkeleton || unit.Val(attrDwoName) != nil || unit.Val(attrGNUDwoName) != nil
}

// next reads the entry at which a reader stands; nil at the end.
func (i *Info) next(r *dwarf.Reader) (*dwarf.Entry, error) {
	e, err := r.Next()
	if err != nil {
		return nil, fmt.Errorf("%w: %w", objfile.ErrCorrupt, err)
	}
	if e == nil {
		return nil, nil //nolint:nilnil // the end, as dwarf.Reader has it
	}
	// A number that the end of its unit cuts off is read as 0, again and again.
	if i.ends++; e.Tag != 0 {
		i.ends = 0
	} else if i.ends > i.size {
		return nil, fmt.Errorf("%w: %s: an entry is cut off", objfile.ErrCorrupt, i.file.Name())
	}
	return e, i.work.Spend(costOf(e))
}

// costOf is what it takes to read an entry.
func costOf(e *dwarf.Entry) int {
	const (
		itself = 4
		text   = 16 // bytes that are copied while an attribute is read
	)
	cost := itself + len(e.Field)
	for _, field := range e.Field {
		if value, ok := field.Val.(string); ok {
			cost += len(value) / text
		}
	}
	return cost
}

// skip goes on behind the children of an entry that was just read. The reader's own
// SkipChildren recurses as deep as the file is nested, and counts nothing.
func (i *Info) skip(r *dwarf.Reader, e *dwarf.Entry) error {
	if !e.Children {
		return nil
	}
	if sibling, ok := e.Val(dwarf.AttrSibling).(dwarf.Offset); ok && sibling > e.Offset {
		r.Seek(sibling)
		return nil
	}
	for depth := 1; depth > 0; {
		inner, err := i.next(r)
		switch {
		case err != nil || inner == nil:
			return err
		case inner.Tag == 0:
			depth--
		case inner.Children:
			depth++
		}
	}
	return nil
}

// walk visits the entries of the unit at which the reader stands, or of all
// units, that are no deeper than namespaces and classes. visit returns false
// to stop.
func (i *Info) walk(r *dwarf.Reader, visit func(unit, e *dwarf.Entry) bool) error {
	var unit *dwarf.Entry
	for {
		e, err := i.next(r)
		if err != nil || e == nil {
			return err
		}
		switch e.Tag {
		case 0:
			continue
		case dwarf.TagCompileUnit, dwarf.TagPartialUnit, 0x4a:
			unit = e
			if splitUnit(e) {
				return fmt.Errorf("%w: split DWARF; link the program with the .dwo files' content (dwp is not read either)", ErrUnsupported)
			}
			continue
		case dwarf.TagNamespace, dwarf.TagClassType, dwarf.TagStructType:
			continue // what it holds is of interest
		}
		if !visit(unit, e) {
			return nil
		}
		if err := i.skip(r, e); err != nil {
			return err
		}
	}
}

// unitOf finds the unit that has an address, and leaves the reader behind its entry.
// The reader's own SeekPC counts nothing.
func (i *Info) unitOf(r *dwarf.Reader, address uint64) (*dwarf.Entry, error) {
	for _, first := range i.units {
		r.Seek(first)
		unit, err := i.next(r)
		if err != nil {
			return nil, err
		}
		if unit == nil {
			break
		}
		ranges, err := i.data.Ranges(unit)
		if err != nil {
			continue // of another unit, perhaps
		}
		if err := i.work.Spend(len(ranges)); err != nil {
			return nil, err
		}
		for _, one := range ranges {
			if one[0] <= address && address < one[1] {
				return unit, nil
			}
		}
	}
	return nil, fmt.Errorf("%w: no unit has %#x", ErrNotFound, address)
}

// attribute returns an attribute of an entry or of the declaration that it
// completes.
func (i *Info) attribute(e *dwarf.Entry, attr dwarf.Attr) any {
	const depth = 4
	for range depth {
		if v := e.Val(attr); v != nil {
			return v
		}
		origin, ok := e.Val(dwarf.AttrSpecification).(dwarf.Offset)
		if !ok {
			if origin, ok = e.Val(dwarf.AttrAbstractOrigin).(dwarf.Offset); !ok {
				return nil
			}
		}
		if e = i.at(origin); e == nil {
			return nil
		}
	}
	return nil
}

// at returns the entry at an offset, nil if there is none.
func (i *Info) at(offset dwarf.Offset) *dwarf.Entry {
	r := i.data.Reader()
	r.Seek(offset)
	e, err := i.next(r)
	if err != nil {
		return nil // what made it stop ends the next step, too
	}
	return e
}
