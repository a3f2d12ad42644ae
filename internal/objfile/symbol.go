// SPDX-License-Identifier: Apache-2.0

package objfile

import (
	"debug/elf"

	"github.com/attune-hpc/attune/internal/symname"
)

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

// Display returns the demangled name.
func (s Symbol) Display() string { return symname.Demangle(s.Name) }

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
