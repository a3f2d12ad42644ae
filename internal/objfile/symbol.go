// SPDX-License-Identifier: Apache-2.0

package objfile

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"path"
	"strings"
)

// ErrTooManySymbols says that a pattern matches more than [MaxMatches].
var ErrTooManySymbols = errors.New("pattern matches too many symbols")

// MaxMatches is the greatest number of symbols that Match returns.
const MaxMatches = 4096

// SymbolKind says what a symbol must be.
type SymbolKind int

// Kinds of symbols.
const (
	// Any symbol that the file defines.
	Any SymbolKind = iota
	// Function is a function, also an indirect one (IFUNC).
	Function
	// Variable is a data object; thread-local ones are none.
	Variable
	// ThreadLocal is a variable of which each thread has a copy. Its value is
	// the offset in its object's block of each thread.
	ThreadLocal
)

// Symbol is a symbol that a file defines.
type Symbol struct {
	// Name without version.
	Name string
	// Version as in name@VERSION, "" if the file has none.
	Version string
	// Default says that a reference without a version gets this one.
	Default bool
	// Value is the virtual address before the load bias is added.
	Value uint64
	// Size in bytes; 0 if the file does not say.
	Size uint64
	// Type and Bind as in the symbol table.
	Type elf.SymType
	Bind elf.SymBind
	// Section that the symbol lies in.
	Section elf.SectionIndex
	// FileOffset of the symbol's first byte, where InFile is set; what lies in
	// .bss has none.
	FileOffset uint64
	InFile     bool
	// Executable and Writable are the permissions of its segment; RELRO says
	// that the loader makes it read-only after relocation.
	Executable, Writable, RELRO bool
	// Source is the name of the source file of a local symbol, "" if the
	// symbol table does not say.
	Source string
	// Dynamic says that it was found in .dynsym: other objects can refer to it.
	Dynamic bool
}

// IFunc says that the value is the address of a resolver that chooses the
// function at load time, not that of the function.
func (s Symbol) IFunc() bool { return s.Type == elf.STT_GNU_IFUNC }

// Is says whether the symbol is of a kind.
func (s Symbol) Is(kind SymbolKind) bool {
	switch kind {
	case Function:
		return s.Type == elf.STT_FUNC || s.IFunc()
	case Variable:
		return s.Type == elf.STT_OBJECT || s.Type == elf.STT_COMMON
	case ThreadLocal:
		return s.Type == elf.STT_TLS
	}
	return true
}

// Symbol finds a symbol by name, in .dynsym and then in .symtab. Of several
// versions it takes the default one; "name@VERSION" asks for another.
// [ErrNoSymbol] if the file does not define it.
func (f *File) Symbol(name string) (Symbol, error) { return f.SymbolOf(name, Any) }

// SymbolOf is Symbol for one kind only.
func (f *File) SymbolOf(name string, kind SymbolKind) (Symbol, error) {
	name, version, versioned := strings.Cut(strings.Replace(name, "@@", "@", 1), "@")
	var found *Symbol
	err := f.each(named(name), func(s Symbol) bool {
		if !s.Is(kind) || versioned && s.Version != version {
			return true
		}
		if found == nil || s.Default && !found.Default {
			found = &s
		}
		return !found.Default && !versioned
	})
	switch {
	case err != nil:
		return Symbol{}, err
	case found == nil:
		return Symbol{}, fmt.Errorf("%w: %s in %s", ErrNoSymbol, name, f.name)
	}
	return *found, nil
}

// Match returns the symbols of a kind whose names match a pattern (path.Match),
// each address and name once. It stops with [ErrTooManySymbols] and what it
// has at [MaxMatches].
func (f *File) Match(pattern string, kind SymbolKind) ([]Symbol, error) {
	matches, err := matcher(pattern)
	if err != nil {
		return nil, err
	}
	type identity struct {
		name  string
		value uint64
	}
	seen := make(map[identity]bool)
	var symbols []Symbol
	full, names := false, newNames()
	err = f.each(matches, func(s Symbol) bool {
		id := identity{s.Name, s.Value}
		if !s.Is(kind) || seen[id] {
			return true
		}
		if full = len(symbols) == MaxMatches || names.Spend(len(s.Name)) != nil; full {
			return false
		}
		seen[id] = true
		symbols = append(symbols, s)
		return true
	})
	if full {
		err = fmt.Errorf("%w: more than %d match %q, or their names have more than %d bytes", ErrTooManySymbols, MaxMatches, pattern, maxFoundNames)
	}
	return symbols, err
}

// named is a filter for one name.
func named(name string) filter {
	return filter{append([]byte(name), 0), func(candidate []byte) bool { return string(candidate) == name }}
}

// matcher compiles a pattern.
func matcher(pattern string) (filter, error) {
	if _, err := path.Match(pattern, ""); err != nil {
		return filter{}, fmt.Errorf("pattern %q: %w", pattern, err)
	}
	literal := []byte(longestLiteral(pattern))
	return filter{literal, func(name []byte) bool {
		if !bytes.Contains(name, literal) {
			return false
		}
		ok, err := path.Match(pattern, string(name))
		return ok && err == nil
	}}, nil
}

// longestLiteral returns the longest part of a pattern that every match
// contains. What follows a bracket or a backslash is not looked at.
func longestLiteral(pattern string) (longest string) {
	if special := strings.IndexAny(pattern, `[\`); special >= 0 {
		pattern = pattern[:special]
	}
	for part := range strings.FieldsFuncSeq(pattern, func(r rune) bool { return r == '*' || r == '?' }) {
		if len(part) > len(longest) {
			longest = part
		}
	}
	return longest
}

// each calls visit for every defined symbol with a wanted name until it
// returns false: first those of .dynsym, then those of .symtab.
func (f *File) each(want filter, visit func(Symbol) bool) error {
	dynamic, err := f.dynamicSymbols()
	if err != nil {
		return err
	}
	stopped := false
	dynamic.each(f, want, func(s Symbol) bool {
		stopped = !visit(s)
		return !stopped
	})
	if stopped {
		return nil
	}
	static, err := f.staticSymbols()
	if err != nil {
		return err
	}
	static.each(f, want, visit)
	return nil
}

// symbolTable is a symbol table in memory. It is never modified, and dropped
// soon after a look-up: kept tables of hundreds of libraries would be most of
// the controller's memory.
type symbolTable struct {
	raw, names []byte
	versions   *versions
	dynamic    bool
}

func (f *File) readDynamicSymbols() (*symbolTable, error) {
	t := &symbolTable{dynamic: true}
	where := f.dynamic.symbols(f.reader, f.headers)
	if where.size == 0 {
		return t, nil
	}
	var err error
	if t.raw, err = f.load("dynamic symbol table", where); err != nil {
		return nil, err
	}
	if t.names, err = f.load("dynamic string table", f.dynamic.strings(f.headers)); err != nil {
		return nil, err
	}
	t.versions = f.readVersions(t.names, t.count())
	return t, nil
}

func (f *File) readStaticSymbols() (*symbolTable, error) {
	t := new(symbolTable)
	section, ok := f.headers.section(elf.SHT_SYMTAB)
	if !ok || uint64(section.Link) >= uint64(len(f.headers.sections)) || compressed(section) {
		return t, nil
	}
	link := f.headers.sections[section.Link]
	if elf.SectionType(link.Type) != elf.SHT_STRTAB || compressed(link) {
		return t, nil
	}
	var err error
	if t.raw, err = f.load("symbol table", table{section.Off, section.Size}); err != nil {
		return nil, err
	}
	t.names, err = f.load("string table", table{link.Off, link.Size})
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

func (t *symbolTable) each(f *File, want filter, visit func(Symbol) bool) {
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
		symbol := t.symbol(f, i, string(name), entry)
		if symbol.Bind == elf.STB_LOCAL {
			symbol.Source = string(source)
		}
		if !visit(symbol) {
			return
		}
	}
}

func (t *symbolTable) symbol(f *File, i int, name string, entry elf.Sym64) Symbol {
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
	if at, ok := f.headers.offset(s.Value, max(s.Size, 1)); ok && at < f.size {
		s.FileOffset, s.InFile = at, true
	}
	if p, ok := f.headers.segment(s.Value, max(s.Size, 1)); ok {
		s.Executable = elf.ProgFlag(p.Flags)&elf.PF_X != 0
		s.Writable = elf.ProgFlag(p.Flags)&elf.PF_W != 0
	}
	s.RELRO = f.headers.relro(s.Value, max(s.Size, 1))
	return s
}
