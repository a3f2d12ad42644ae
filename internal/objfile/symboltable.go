// SPDX-License-Identifier: Apache-2.0

package objfile

import (
	"debug/elf"
	"encoding/binary"
	"strings"
)

// symbolTable is a symbol table in memory. It is never modified, and dropped
// soon after a look-up: kept tables of hundreds of libraries would be most of
// the controller's memory.
type symbolTable struct {
	raw, names []byte
	versions   *versions
	dynamic    bool
}

func (l *linking) readDynamicSymbols() (*symbolTable, error) {
	t := &symbolTable{dynamic: true}
	where := l.dynamic.symbols(l.reader, l.headers)
	if where.size == 0 {
		return t, nil
	}
	var err error
	if t.raw, err = l.load("dynamic symbol table", where); err != nil {
		return nil, err
	}
	if t.names, err = l.load("dynamic string table", l.dynamic.strings(l.headers)); err != nil {
		return nil, err
	}
	t.versions = l.readVersions(t.names, t.count())
	return t, nil
}

func (l *linking) readStaticSymbols() (*symbolTable, error) {
	t := new(symbolTable)
	section, ok := l.headers.section(elf.SHT_SYMTAB)
	if !ok || uint64(section.Link) >= uint64(len(l.headers.sections)) || compressed(section) {
		return t, nil
	}
	link := l.headers.sections[section.Link]
	if elf.SectionType(link.Type) != elf.SHT_STRTAB || compressed(link) {
		return t, nil
	}
	var err error
	if t.raw, err = l.load("symbol table", table{section.Off, section.Size}); err != nil {
		return nil, err
	}
	t.names, err = l.load("string table", table{link.Off, link.Size})
	return t, err
}

func compressed(s elf.Section64) bool {
	return elf.SectionFlag(s.Flags)&elf.SHF_COMPRESSED != 0
}

func (t *symbolTable) count() int { return len(t.raw) / elf.Sym64Size }

// entry decodes one entry: name, info, other, section, value, size.
func (t *symbolTable) entry(i int) elf.Sym64 {
	data := t.raw[i*elf.Sym64Size:][:elf.Sym64Size]
	return elf.Sym64{
		Name: binary.LittleEndian.Uint32(data), Info: data[4], Other: data[5],
		Shndx: binary.LittleEndian.Uint16(data[6:]),
		Value: binary.LittleEndian.Uint64(data[8:]), Size: binary.LittleEndian.Uint64(data[16:]),
	}
}

func (t *symbolTable) name(entry elf.Sym64) []byte { return text(t.names, uint64(entry.Name)) }

func (t *symbolTable) each(l *layout, want filter, visit func(Symbol) bool) {
	var source []byte
	near := begins(t.names, want.part)
	for i := range t.count() {
		entry := t.entry(i)
		kind := elf.ST_TYPE(entry.Info)
		if kind == elf.STT_FILE {
			source = t.name(entry) // of the local symbols that follow
		}
		undefined := elf.SectionIndex(entry.Shndx) == elf.SHN_UNDEF
		if undefined || kind == elf.STT_SECTION || kind == elf.STT_FILE {
			continue
		}
		if !near.has(uint64(entry.Name)) {
			continue
		}
		name := t.name(entry)
		if len(name) == 0 || !want.wants(name) {
			continue
		}
		symbol := t.symbol(l, i, string(name), entry)
		if symbol.Name == "" {
			continue // a version, of nothing
		}
		if symbol.Bind == elf.STB_LOCAL {
			symbol.Source = string(source)
		}
		if !visit(symbol) {
			return
		}
	}
}

func (t *symbolTable) symbol(l *layout, i int, name string, entry elf.Sym64) Symbol {
	s := Symbol{
		Name: name, Default: true, Dynamic: t.dynamic,
		Value: entry.Value, Size: entry.Size, Section: elf.SectionIndex(entry.Shndx),
		Type: elf.ST_TYPE(entry.Info), Bind: elf.ST_BIND(entry.Info),
	}
	if t.dynamic {
		s.Version, s.Default = t.versions.of(i)
	} else if base, version, ok := strings.Cut(name, "@"); ok {
		// .symtab writes versions into names: f@@V2 is the default, f@V1 not.
		s.Name, s.Default = base, strings.HasPrefix(version, "@")
		s.Version = strings.TrimPrefix(version, "@")
	}
	if s.Type == elf.STT_TLS || s.Section == elf.SHN_ABS {
		return s // the value is no address
	}
	if at, ok := l.headers.offset(s.Value, max(s.Size, 1)); ok && at < l.size {
		s.FileOffset, s.InFile = at, true
	}
	if p, ok := l.headers.segment(s.Value, max(s.Size, 1)); ok {
		s.Executable = elf.ProgFlag(p.Flags)&elf.PF_X != 0
		s.Writable = elf.ProgFlag(p.Flags)&elf.PF_W != 0
	}
	s.RELRO = l.headers.relro(s.Value, max(s.Size, 1))
	return s
}
