// SPDX-License-Identifier: Apache-2.0

package dwarfinfo

import (
	"debug/dwarf"
	"debug/elf"
	"fmt"
	"slices"
	"strings"

	"github.com/attune-hpc/attune/internal/objfile"
)

// Function is a function with its parameters.
type Function struct {
	// Symbol that was looked up.
	Symbol objfile.Symbol
	// Parameters in their order; that of a C++ method begins with "this".
	Parameters []Parameter
	// Result type; Kind Other for void.
	Result Type
}

// Parameter of a function, and where it is at the first instruction.
type Parameter struct {
	Name string
	Type Type
	// Class says how it is passed, on x86-64; Unknown elsewhere.
	Class Class
	// General and Vector are the registers that hold it, by their numbers, from 0, among
	// those of their kind that parameters are passed in: rdi, rsi, …, and xmm0, xmm1, ….
	General, Vector []int
}

// ByAddress says that its register holds the address of an object of C++.
func (p Parameter) ByAddress() bool { return p.Class == InRegisters && p.Type.passing == byAddress }

// languageGo is Go's DW_AT_language.
const languageGo = 0x16

// languagesOfC are C and C++ in their versions, of the same attribute.
var languagesOfC = []int64{0x01, 0x02, 0x04, 0x0c, 0x19, 0x1a, 0x1d, 0x21, 0x2a, 0x2b, 0x2c, 0x3a, 0x3e}

// maxParameters bounds what is read of a function.
const maxParameters = 256

// altered marks functions of which the compiler has made a version with other
// parameters.
var altered = [...]string{".isra.", ".constprop.", ".part.", ".specialized.", ".cold"}

// Values of DW_AT_calling_convention (DWARF 5, 3.3.1.1) of functions that are called as
// their source says. LLVM gives a function of which it removes parameters no other name:
// newer versions write DW_CC_nocall, and older ones leave no mark.
const (
	callNormal  = 1
	callProgram = 2
)

// Function finds the parameters of a function symbol. [ErrNotFound];
// [ErrUnsupported], also for a function that the compiler has given other
// parameters than the source; [objfile.ErrCorrupt].
func (i *Info) Function(symbol objfile.Symbol) (f Function, err error) {
	i.begin()
	defer func() { err = i.done(err) }()
	defer guard(&err)
	for _, mark := range altered {
		if strings.Contains(symbol.Name, mark) {
			return f, fmt.Errorf("%w: the compiler has changed the parameters of %s", ErrUnsupported, symbol.Name)
		}
	}
	r := i.data.Reader()
	unit, err := i.unitOf(r, symbol.Value)
	if err != nil {
		return f, fmt.Errorf("%s in %s: %w", symbol.Name, i.file.Name(), err)
	}
	if splitUnit(unit) {
		return f, fmt.Errorf("%w: %s was compiled with -gsplit-dwarf", ErrUnsupported, symbol.Name)
	}
	entry, err := i.subprogram(r, symbol.Value)
	if err != nil {
		return f, err
	}
	if entry == nil {
		return f, fmt.Errorf("%w: %s in %s", ErrNotFound, symbol.Name, i.file.Name())
	}
	if how, ok := i.attribute(entry, dwarf.AttrCalling).(int64); ok && how != callNormal && how != callProgram {
		return f, fmt.Errorf("%w: %s is not called as its source says: the compiler may have changed its parameters", ErrUnsupported, symbol.Name)
	}
	f.Symbol = symbol
	if f.Result, err = i.typeOf(entry); err != nil {
		return f, err
	}
	if f.Parameters, err = i.parameters(entry); err != nil {
		return f, err
	}
	if i.file.Machine() == elf.EM_X86_64 {
		language, _ := unit.Val(dwarf.AttrLanguage).(int64)
		f.assign(language)
	}
	return f, nil
}

// subprogram looks through the unit after which the reader stands.
func (i *Info) subprogram(r *dwarf.Reader, address uint64) (found *dwarf.Entry, err error) {
	err = i.walk(r, func(unit, e *dwarf.Entry) bool {
		if unit != nil { // the next one
			return false
		}
		if low, ok := e.Val(dwarf.AttrLowpc).(uint64); ok && e.Tag == dwarf.TagSubprogram && low == address {
			found = e
		}
		return found == nil
	})
	return found, err
}

// parameters reads the children of a function's entry.
func (i *Info) parameters(function *dwarf.Entry) (parameters []Parameter, err error) {
	if !function.Children {
		return nil, nil
	}
	r := i.data.Reader()
	r.Seek(function.Offset)
	if _, err := i.next(r); err != nil {
		return nil, err
	}
	for len(parameters) < maxParameters {
		e, err := i.next(r)
		switch {
		case err != nil:
			return nil, err
		case e == nil || e.Tag == 0:
			return parameters, nil
		case e.Tag == dwarf.TagFormalParameter && e.Val(dwarf.AttrVarParam) != true: // else a result of Go
			p := Parameter{}
			p.Name, _ = i.attribute(e, dwarf.AttrName).(string)
			if p.Type, err = i.typeOf(e); err != nil {
				return nil, err
			}
			parameters = append(parameters, p)
		}
		if err := i.skip(r, e); err != nil {
			return nil, err
		}
	}
	return nil, fmt.Errorf("%w: more than %d parameters", ErrUnsupported, maxParameters)
}

// assign gives registers to the parameters. A large result takes the
// first register for the address of where it goes.
func (f *Function) assign(language int64) {
	a := allocator{language: language}
	switch result := f.Result; result.Kind {
	case Aggregate:
		parts := classify(result)
		a.lost = parts == nil
		if result.passing == byAddress || !a.lost && parts[0] == memory {
			a.integers++
		}
	case Array:
		a.lost = true
	}
	for i := range f.Parameters {
		a.place(&f.Parameters[i])
	}
}

// Parameter finds one by name. [ErrNotFound] lists those there are.
func (f Function) Parameter(name string) (Parameter, error) {
	at := slices.IndexFunc(f.Parameters, func(p Parameter) bool { return p.Name == name })
	if at >= 0 {
		return f.Parameters[at], nil
	}
	var names []string
	for _, p := range f.Parameters {
		names = append(names, p.Name)
	}
	return Parameter{}, fmt.Errorf("%w: parameter %s of %s; it has: %s", ErrNotFound, name, f.Symbol.Name, strings.Join(names, ", "))
}
