// SPDX-License-Identifier: Apache-2.0

package dwarfinfo

import (
	"debug/dwarf"
	"errors"
	"fmt"

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

// maxEntries bounds how many entries one look-up reads.
const maxEntries = 20_000_000

// Info is the debug information of a file.
type Info struct {
	file *objfile.File
	dirs objfile.DebugDirs
	data *dwarf.Data
}

// Open reads the debug sections of a file, or else of its separate debug file.
// The file stays the caller's and must stay open. [ErrNoDebugInfo], with the
// reason; [ErrUnsupported]; what [objfile.File.Section] returns.
func Open(f *objfile.File, dirs objfile.DebugDirs) (*Info, error) {
	source := f
	if !f.HasSection(".debug_info") {
		debug, err := f.DebugFile(dirs)
		if err != nil {
			return nil, fmt.Errorf("%w in %s: %w; compile with -g or install its debug symbols", ErrNoDebugInfo, f.Name(), err)
		}
		defer func() { _ = debug.Close() }() // read only
		source = debug
	}
	data, err := read(source)
	if err != nil {
		return nil, err
	}
	return &Info{file: f, dirs: dirs, data: data}, nil
}

// read loads what types and addresses need. Line tables are left out.
func read(f *objfile.File) (data *dwarf.Data, err error) {
	defer guard(&err)
	sections := make(map[string][]byte)
	for _, name := range []string{"abbrev", "info", "str", "ranges", "addr", "line_str", "rnglists", "str_offsets"} {
		content, err := f.Section(".debug_"+name, objfile.MaxSectionBytes)
		if err != nil && !errors.Is(err, objfile.ErrNoSection) {
			return nil, err
		}
		sections[name] = content
	}
	if sections["info"] == nil {
		return nil, fmt.Errorf("%w in %s", ErrNoDebugInfo, f.Name())
	}
	data, err = dwarf.New(sections["abbrev"], nil, nil, sections["info"], nil, nil, sections["ranges"], sections["str"])
	if err != nil {
		return nil, fmt.Errorf("%w: %s: %w", objfile.ErrCorrupt, f.Name(), err)
	}
	for _, name := range []string{"addr", "line_str", "rnglists", "str_offsets"} {
		if err := data.AddSection(".debug_"+name, sections[name]); err != nil {
			return nil, fmt.Errorf("%w: %s: %w", objfile.ErrCorrupt, f.Name(), err)
		}
	}
	return data, nil
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

// walk visits the entries of the unit at which the reader stands, or of all
// units, that are no deeper than namespaces and classes. visit returns false
// to stop. budget bounds the entries of one look-up.
func walk(r *dwarf.Reader, budget *int, visit func(unit, e *dwarf.Entry) bool) error {
	var unit *dwarf.Entry
	for ; *budget > 0; *budget-- {
		e, err := r.Next()
		if err != nil {
			return fmt.Errorf("%w: %w", objfile.ErrCorrupt, err)
		}
		if e == nil {
			return nil
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
		r.SkipChildren()
	}
	return fmt.Errorf("%w: more than %d entries", ErrUnsupported, maxEntries)
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
	e, err := r.Next()
	if err != nil {
		return nil
	}
	return e
}
