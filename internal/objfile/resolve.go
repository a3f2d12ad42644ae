// SPDX-License-Identifier: Apache-2.0

package objfile

import (
	"debug/elf"
	"errors"
	"fmt"

	"github.com/attune-hpc/attune/internal/symname"
)

// Errors of Resolve.
var (
	// ErrIndirect says that the symbol is an indirect function (IFUNC): its
	// value is a resolver, and which function it chose stands in the GOT slots
	// of the objects that call it only.
	ErrIndirect = errors.New("indirect function (IFUNC): its code is chosen when it is loaded")
	// ErrThreadLocal says that each thread has its own copy of the variable.
	ErrThreadLocal = errors.New("thread-local variable has no single address")
)

// Resolved is a symbol with its address in a process.
type Resolved struct {
	// Address in the process. For an indirect function that of its resolver.
	Address uint64
	// Symbol as the file defines it.
	Symbol Symbol
	// Image that defines it.
	Image Image
}

// Resolve finds the address of a symbol in a process. object is a pattern for
// the base name or path of the defining object, "" for whichever defines it
// first, in the order of addresses. [ErrNoObject], [ErrNoSymbol], or
// [ErrIndirect] together with the resolver's address, or [ErrThreadLocal]. A
// variable of which the program has a copy (R_*_COPY) is found there, whatever
// object was asked for.
func Resolve(pid int, object, symbol string, kind SymbolKind) (Resolved, error) {
	images, err := Images(pid)
	if err != nil {
		return Resolved{}, err
	}
	return ResolveIn(images, object, symbol, kind)
}

// ResolveIn is Resolve among images that are known already. Objects whose
// file cannot be read any more do not end the search, but are told if the
// symbol is not found.
func ResolveIn(images []Image, object, symbol string, kind SymbolKind) (Resolved, error) {
	var missing error
	var unread []error
	for _, image := range images {
		if !image.Matches(object) {
			continue
		}
		found, err := image.Symbol(symbol, kind)
		switch {
		case err == nil:
			return resolved(definition(images, image, found))
		case errors.Is(err, ErrNoSymbol):
			missing = fmt.Errorf("%w: %s in %q", ErrNoSymbol, symbol, object)
		default:
			unread = append(unread, err)
		}
	}
	return Resolved{}, notFound(images, object, missing, unread)
}

// LookupIn is ResolveIn for a name in any of the forms of [File.Lookup], but no
// pattern: static functions and variables, those of a separate debug file, and
// demangled names. Where an object has several of a name the error is an
// [*AmbiguousError]. A thread-local variable, asked for by its kind, has no
// address: Resolved.Address is 0.
func LookupIn(images []Image, object, name string, kind SymbolKind) (Resolved, error) {
	var missing error
	var without Image // the symbol: the program, if it was looked at, else the last one
	var unread []error
	for _, image := range images {
		if !image.Matches(object) {
			continue
		}
		found, err := image.lookup(name, kind, false)
		switch {
		case err == nil && found.Type == elf.STT_TLS:
			return Resolved{Symbol: found, Image: image}, nil
		case err == nil:
			return resolved(definition(images, image, found))
		case errors.Is(err, ErrAmbiguous):
			return Resolved{}, fmt.Errorf("%s: %w", image.Name(), err)
		case errors.Is(err, ErrNoSymbol):
			if missing == nil || !without.Main() {
				without = image
			}
			missing = err
		default:
			unread = append(unread, err)
		}
	}
	if missing != nil {
		_, missing = without.lookup(name, kind, true)
	}
	return Resolved{}, notFound(images, object, missing, unread)
}

// notFound joins why nothing was found: missing is that of the last object without
// the symbol, nil where no object was looked at.
func notFound(images []Image, object string, missing error, unread []error) error {
	if missing == nil {
		missing = NoObject(images, object)
	}
	return errors.Join(append([]error{missing}, unread...)...)
}

// lookup finds the one symbol that a name stands for; suggest: or says what is close.
func (i Image) lookup(name string, kind SymbolKind, suggest bool) (Symbol, error) {
	file, err := i.Open()
	if err != nil {
		return Symbol{}, err
	}
	defer file.Close()
	found, err := file.Lookup(name, LookupOptions{Kind: kind, Suggest: suggest})
	if err != nil {
		return Symbol{}, err
	}
	query, err := symname.Parse(name)
	if err == nil && (query.IsPattern() && found[0].Name != query.Text || len(found) > 1) {
		err = &AmbiguousError{Name: name, Choices: found}
	}
	return found[0], err
}

// definition follows a variable of a library into the program that has a copy
// of it, which is the one that everybody uses.
func definition(images []Image, image Image, symbol Symbol) (Image, Symbol) {
	if symbol.Is(Variable) && symbol.Dynamic {
		for _, program := range images {
			if !program.program || program.Bias == image.Bias {
				continue
			}
			if copied, ok := program.copied(symbol.Name); ok {
				return program, copied
			}
		}
	}
	return image, symbol
}

// copied returns the copy of a library's variable in a program.
func (i Image) copied(name string) (Symbol, bool) {
	file, err := i.Open()
	if err != nil {
		return Symbol{}, false
	}
	defer file.Close()
	if has, err := file.copies(name); err != nil || !has {
		return Symbol{}, false
	}
	symbol, err := file.SymbolOf(name, Variable)
	return symbol, err == nil
}

func resolved(image Image, symbol Symbol) (Resolved, error) {
	r := Resolved{Address: image.Address(symbol.Value), Symbol: symbol, Image: image}
	switch {
	case symbol.IFunc():
		return r, fmt.Errorf("%s in %s: %w", symbol.Name, image.Path, ErrIndirect)
	case symbol.Type == elf.STT_TLS:
		return Resolved{}, fmt.Errorf("%s in %s: %w", symbol.Name, image.Path, ErrThreadLocal)
	case symbol.Section == elf.SHN_ABS:
		r.Address = symbol.Value
	}
	return r, nil
}

// OtherVersion says whether a slot was linked to another version of a function than this
// one. The address of an indirect function may be that of the code which was chosen, so
// what has the same version is not told by it.
func (r Resolved) OtherVersion(slot Slot) bool {
	if slot.Version == "" || slot.Version == r.Symbol.Version {
		return false
	}
	own, err := r.Image.Symbol(slot.Symbol+"@"+slot.Version, Function)
	return err == nil && r.Image.Address(own.Value) != r.Address
}
